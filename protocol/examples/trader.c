/* A trader over TCP in C11, with nothing but the generated header and the system's library: logs on,
 * places an order, cancels it, logs out.
 *
 *     cc -std=c11 -I ../schema trader.c -o trader && ./trader HOST PORT KEY_ID [SYMBOL] < secret
 *
 * Reads the key's secret from standard input; HOST is a number such as 127.0.0.1, SYMBOL the symbol's, in
 * order of definition (0 if it is left out). Prints one line per step. SHA-256 stands here only so that no
 * library is needed.
 *
 * An error ends it. Whoever wants to know what became of a command then logs on again: the Welcome names the last
 * sequence that was decided (FORMATS.md, "What a client knows of commands under way"). */
#define _POSIX_C_SOURCE 200809L
#include "touchline.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>

static void fail(const char *why) {
    fprintf(stderr, "%s\n", why);
    exit(1);
}

/* By TOUCHLINE_REFUSAL_REASON_*. */
static const char *const REFUSALS[] = {
    "(unknown)",    "Malformed",       "Version",  "NotAuthenticated", "RoleNotPermitted",
    "InvalidHello", "TooManySessions", "Rejected", "LogUnavailable",   "HistoryLost",
    "NoFeed"};

/* SHA-256 (FIPS 180-4) and HMAC over it. */
static uint32_t rotate(uint32_t word, int by) { return word >> by | word << (32 - by); }

static const uint32_t ROUND[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static void compress(uint32_t state[8], const uint8_t block[64]) {
    uint32_t w[64], v[8];
    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
               (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
    for (int i = 16; i < 64; i++) {
        uint32_t a = w[i - 15], b = w[i - 2];
        w[i] = w[i - 16] + (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) + w[i - 7] +
               (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
    }
    memcpy(v, state, sizeof v);
    for (int i = 0; i < 64; i++) {
        uint32_t e = v[4], a = v[0];
        uint32_t first = v[7] + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) +
                         ((e & v[5]) ^ (~e & v[6])) + ROUND[i] + w[i];
        uint32_t second = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) +
                          ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));
        memmove(v + 1, v, 7 * sizeof *v);
        v[4] += first;
        v[0] = first + second;
    }
    for (int i = 0; i < 8; i++) state[i] += v[i];
}

static void sha256(const uint8_t *data, size_t length, uint8_t digest[32]) {
    uint32_t state[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                         0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    uint8_t tail[128] = {0};
    size_t whole = length / 64 * 64, rest = length - whole, padded = rest < 56 ? 64 : 128;
    for (size_t at = 0; at < whole; at += 64) compress(state, data + at);
    memcpy(tail, data + whole, rest);
    tail[rest] = 0x80;
    for (int i = 0; i < 8; i++) tail[padded - 1 - i] = (uint8_t)((uint64_t)length * 8 >> 8 * i);
    for (size_t at = 0; at < padded; at += 64) compress(state, tail + at);
    for (int i = 0; i < 32; i++) digest[i] = (uint8_t)(state[i / 4] >> (24 - 8 * (i % 4)));
}

/* The secret has exactly 64 characters: a block of SHA-256, as HMAC wants its key. */
static void hmac(const char *secret, const uint8_t *data, size_t length, uint8_t mac[32]) {
    uint8_t inner[64 + 256], outer[64 + 32];
    for (int i = 0; i < 64; i++) {
        inner[i] = (uint8_t)secret[i] ^ 0x36;
        outer[i] = (uint8_t)secret[i] ^ 0x5c;
    }
    memcpy(inner + 64, data, length);
    sha256(inner, 64 + length, outer + 64);
    sha256(outer, sizeof outer, mac);
}

/* The connection and the session on it. */
static int line;
static uint64_t key_id, sequence;
static uint32_t session, epoch;
static union {
    struct touchline_message_header header;
    uint8_t bytes[4096];
    uint64_t align;
} in;

/* Seconds of silence after which a side says something; until the Welcome says otherwise. */
static time_t heartbeat = 60, said;

static time_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec;
}

static void exactly(uint8_t *into, size_t count) {
    while (count > 0) {
        ssize_t got = recv(line, into, count, 0);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && errno == EAGAIN) fail("the engine says nothing");
        if (got <= 0) fail("the engine closed the connection");
        into += got;
        count -= (size_t)got;
    }
}

static void send_all(const void *message, size_t length) {
    const uint8_t *from = message;
    while (length > 0) {
        ssize_t sent = send(line, from, length, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0) fail("the engine does not read");
        from += sent;
        length -= (size_t)sent;
    }
    said = now();
}

static struct touchline_message_header header(unsigned template_id, size_t bytes) {
    struct touchline_message_header made = {(uint16_t)(bytes - sizeof made), (uint16_t)template_id,
                                            TOUCHLINE_SCHEMA_ID, TOUCHLINE_SCHEMA_VERSION};
    return made;
}

/* Reads a message into `in`; its template. The engine says something in each interval, so there is always an
 * occasion for a heartbeat. */
static unsigned receive(void) {
    exactly(in.bytes, sizeof in.header);
    if (in.header.block_length > sizeof in.bytes - sizeof in.header) fail("a message is too long");
    exactly(in.bytes + sizeof in.header, in.header.block_length);
    if (session != 0 && now() - said >= heartbeat) {
        struct touchline_heartbeat alive = {0};
        alive.header = header(TOUCHLINE_TEMPLATE_HEARTBEAT, sizeof alive);
        send_all(&alive, sizeof alive);
    }
    return in.header.template_id;
}

static struct touchline_command_header command(void) {
    struct touchline_command_header made = {0};
    made.correlation = made.sequence = ++sequence;
    made.key_id = key_id;
    made.session = session;
    made.epoch = epoch;
    return made;
}

/* Waits for the terminal reply to the last command and copies the event, taken out of its envelope. What else
 * comes is fills, what others did to orders of this session, and perhaps a Gap, which says that some of that is
 * missing: whoever keeps orders open has to look at it. */
static void reply(unsigned wanted, void *event, size_t bytes) {
    for (;;) {
        unsigned template_id = receive();
        struct touchline_envelope envelope;
        if (template_id >= TOUCHLINE_TEMPLATE_HELLO) continue;
        if (in.header.block_length < sizeof envelope) fail("an event without its envelope");
        memcpy(&envelope, in.bytes + sizeof in.header, sizeof envelope);
        if (envelope.sequence != sequence || !(envelope.flags & TOUCHLINE_ENVELOPE_TERMINAL)) continue;
        if (template_id == TOUCHLINE_TEMPLATE_REJECTED) {
            uint16_t reason = 0;
            if (in.header.block_length >= sizeof envelope + sizeof reason)
                memcpy(&reason, in.bytes + sizeof in.header + sizeof envelope, sizeof reason);
            fprintf(stderr, "rejected, reason %u\n", reason);
            exit(1);
        }
        if (template_id != wanted || in.header.block_length - sizeof envelope != bytes - sizeof in.header)
            fail("another reply than the command has");
        memcpy(event, &in.header, sizeof in.header);
        memcpy((uint8_t *)event + sizeof in.header, in.bytes + sizeof in.header + sizeof envelope,
               bytes - sizeof in.header);
        return;
    }
}

static void dial(const char *host, const char *port) {
    struct sockaddr_in address = {0};
    int on = 1;
    address.sin_family = AF_INET;
    address.sin_port = htons((uint16_t)atoi(port));
    if (inet_pton(AF_INET, host, &address.sin_addr) != 1) fail("HOST is no address");
    line = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(line, (struct sockaddr *)&address, sizeof address) != 0) fail("cannot connect");
    setsockopt(line, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

/* The handshake's next message, which is this one unless the engine refuses. */
static void expect(unsigned wanted) {
    struct touchline_refused refused;
    unsigned template_id = receive();
    if (template_id == wanted) return;
    if (template_id != TOUCHLINE_TEMPLATE_REFUSED || in.header.block_length + sizeof in.header != sizeof refused)
        fail("another message than the handshake has");
    memcpy(&refused, in.bytes, sizeof refused);
    unsigned known = refused.reason < sizeof REFUSALS / sizeof *REFUSALS ? refused.reason : 0;
    fprintf(stderr, "refused, reason %u %s", refused.reason, REFUSALS[known]);
    if (refused.reason == TOUCHLINE_REFUSAL_REASON_VERSION)
        fprintf(stderr, ": the engine speaks %u.%u", refused.protocol_major, refused.protocol_minor);
    /* The core's own reason, one of TOUCHLINE_REJECT_REASON_*. */
    if (refused.reject_reason != 0) fprintf(stderr, ": reject reason %u", refused.reject_reason);
    fprintf(stderr, "\n");
    exit(1);
}

static void log_on(const char *secret) {
    struct touchline_hello hello = {0};
    struct touchline_proof proof = {0};
    struct touchline_welcome welcome;
    uint8_t signed_bytes[32 + sizeof hello];
    hello.header = header(TOUCHLINE_TEMPLATE_HELLO, sizeof hello);
    hello.protocol_major = TOUCHLINE_PROTOCOL_MAJOR;
    hello.protocol_minor = TOUCHLINE_PROTOCOL_MINOR;
    hello.role = TOUCHLINE_ROLE_TRADER;
    hello.lane = TOUCHLINE_LANE_HOT;
    hello.carrier = TOUCHLINE_CARRIER_STREAM;
    hello.key_id = key_id;
    hello.name.length = 1;
    hello.name.text[0] = 'c';
    send_all(&hello, sizeof hello);
    expect(TOUCHLINE_TEMPLATE_CHALLENGE);
    memcpy(signed_bytes, in.bytes + sizeof in.header, 32);
    memcpy(signed_bytes + 32, &hello, sizeof hello);
    proof.header = header(TOUCHLINE_TEMPLATE_PROOF, sizeof proof);
    hmac(secret, signed_bytes, sizeof signed_bytes, proof.mac);
    send_all(&proof, sizeof proof);
    expect(TOUCHLINE_TEMPLATE_WELCOME);
    if (in.header.block_length + sizeof in.header != sizeof welcome) fail("no Welcome");
    memcpy(&welcome, in.bytes, sizeof welcome);
    heartbeat = welcome.heartbeat_seconds;
    /* An engine of which nothing comes for three intervals is gone. */
    struct timeval limit = {3 * heartbeat, 0};
    setsockopt(line, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    session = welcome.session;
    epoch = welcome.epoch;
    sequence = welcome.last_sequence;
    printf("session %u epoch %u\n", session, epoch);
}

int main(int count, char **arguments) {
    char secret[80] = {0};
    if (count < 4 || count > 5 || !fgets(secret, sizeof secret, stdin) || strcspn(secret, "\n") != 64)
        fail("usage: trader HOST PORT KEY_ID [SYMBOL] < secret");
    key_id = strtoull(arguments[3], NULL, 10);
    uint32_t symbol = count == 5 ? (uint32_t)strtoul(arguments[4], NULL, 10) : 0;
    dial(arguments[1], arguments[2]);
    log_on(secret);

    struct touchline_new_order order = {0};
    struct touchline_order_result result;
    order.header = header(TOUCHLINE_TEMPLATE_NEW_ORDER, sizeof order);
    order.command = command();
    order.symbol = symbol;
    order.side = TOUCHLINE_SIDE_BUY;
    order.order_type = TOUCHLINE_ORDER_TYPE_LIMIT;
    order.time_in_force = TOUCHLINE_TIME_IN_FORCE_GTC;
    order.price = 10 * TOUCHLINE_UNITS_PER_WHOLE;
    order.quantity = 2 * TOUCHLINE_UNITS_PER_WHOLE;
    send_all(&order, sizeof order);
    reply(TOUCHLINE_TEMPLATE_ORDER_RESULT, &result, sizeof result);
    printf("placed %llu account %u\n", (unsigned long long)result.order_id, result.account);

    struct touchline_cancel_order cancel = {0};
    struct touchline_order_canceled canceled;
    cancel.header = header(TOUCHLINE_TEMPLATE_CANCEL_ORDER, sizeof cancel);
    cancel.command = command();
    cancel.symbol = symbol;
    cancel.order_id = result.order_id;
    send_all(&cancel, sizeof cancel);
    reply(TOUCHLINE_TEMPLATE_ORDER_CANCELED, &canceled, sizeof canceled);
    printf("canceled %llu\n", (unsigned long long)canceled.order_id);

    struct touchline_logout logout = {0};
    logout.header = header(TOUCHLINE_TEMPLATE_LOGOUT, sizeof logout);
    logout.command = command();
    send_all(&logout, sizeof logout);
    while (receive() != TOUCHLINE_TEMPLATE_SESSION_CLOSED) {
    }
    printf("logged out\n");
    return 0;
}
