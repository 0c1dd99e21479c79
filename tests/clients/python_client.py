"""An off-the-shelf client with nothing changed but its base URL: it trades, queries and cancels every kind
of order. Run by tests/system/off_the_shelf.rs; argv: client, base URL, API key, secret.

Ends with status 77 when the client is not installed."""

import decimal
import sys

SYMBOL = "BTCUSDT"


def check(condition, what):
    if not condition:
        sys.exit(f"wrong: {what}")


def python_binance(url, key, secret):
    try:
        from binance.client import Client
        from binance.exceptions import BinanceAPIException as ApiException
    except ImportError:
        sys.exit(77)
    client = Client(key, secret, ping=False)
    client.API_URL = f"{url}/api"
    client.ping()
    check(client.get_server_time()["serverTime"] > 0, "time")
    check(client.get_symbol_info(SYMBOL)["baseAsset"] == "BTC", "symbol")
    common = {"symbol": SYMBOL, "quantity": "0.1"}

    def limit(side, price, **more):
        return client.create_order(
            side=side, type="LIMIT", timeInForce="GTC", price=price, **common, **more
        )

    # A last price, for stops and lists.
    limit("SELL", "20000")
    bought = client.order_market_buy(symbol=SYMBOL, quantity="0.1")
    check(bought["status"] == "FILLED" and len(bought["fills"]) == 1, bought)

    placed = [
        limit("BUY", "19000", newClientOrderId="mine"),
        limit("BUY", "19000", icebergQty="0.05"),
        client.create_order(side="SELL", type="LIMIT_MAKER", price="21000", **common),
        client.create_order(side="SELL", type="STOP_LOSS", stopPrice="18000", **common),
        client.create_order(side="SELL", type="TAKE_PROFIT", stopPrice="22000", **common),
        client.create_order(
            side="SELL", type="STOP_LOSS_LIMIT", stopPrice="18000", price="17900",
            timeInForce="GTC", **common
        ),
        client.create_order(
            side="BUY", type="TAKE_PROFIT_LIMIT", stopPrice="18000", price="18100",
            timeInForce="GTC", **common
        ),
    ]
    ids = [order["orderId"] for order in placed]
    check([order["orderId"] for order in client.get_open_orders(symbol=SYMBOL)] == ids, "open orders")
    for id in ids:
        check(client.get_order(symbol=SYMBOL, orderId=id)["status"] == "NEW", id)
    check(client.get_order(symbol=SYMBOL, origClientOrderId="mine")["orderId"] == ids[0], "by name")
    for id in ids:
        check(client.cancel_order(symbol=SYMBOL, orderId=id)["status"] == "CANCELED", id)
    check(client.get_open_orders() == [], "all are cancelled")
    client.create_test_order(side="BUY", type="MARKET", **common)

    try:
        client.cancel_order(symbol=SYMBOL, orderId=ids[0])
        sys.exit("wrong: a closed order was cancelled")
    except ApiException as error:
        check((error.status_code, error.code) == (400, -2011), error)
    balance = client.get_asset_balance(asset="USDT")
    check(decimal.Decimal(balance["locked"]) == 0, balance)
    check(len(client.get_order_book(symbol=SYMBOL)["bids"]) == 0, "book")
    check(len(client.get_recent_trades(symbol=SYMBOL)) == 1, "trades")
    check(len(client.get_klines(symbol=SYMBOL, interval="1m")) >= 1, "candles")
    listen_key = client.stream_get_listen_key()
    client.stream_keepalive(listen_key)
    client.stream_close(listen_key)


def ccxt(url, key, secret):
    try:
        import ccxt as library
    except ImportError:
        sys.exit(77)
    # Its class for this interface has the name of the other client's package.
    exchange = getattr(library, "binance")({"apiKey": key, "secret": secret})
    # Nothing else is to be called, and nothing outside of this machine.
    exchange.urls["api"] = {name: "http://127.0.0.1:9" for name in exchange.urls["api"]}
    exchange.urls["api"]["public"] = exchange.urls["api"]["private"] = f"{url}/api/v3"
    exchange.options.update(
        {
            "fetchMarkets": {"types": ["spot"]},
            "fetchMargins": False,
            "fetchCurrencies": False,
            "defaultType": "spot",
        }
    )
    exchange.has["fetchCurrencies"] = False
    market = "BTC/USDT"
    check(exchange.load_markets()[market]["base"] == "BTC", "markets")
    exchange.create_order(market, "limit", "sell", 0.1, 20000)
    bought = exchange.create_order(market, "market", "buy", 0.1)
    check(bought["status"] == "closed", bought)
    placed = [
        exchange.create_order(market, "limit", "buy", 0.1, 19000),
        exchange.create_order(market, "limit", "sell", 0.1, 21000, {"postOnly": True}),
        exchange.create_order(market, "limit", "sell", 0.1, 17900, {"stopLossPrice": 18000}),
        exchange.create_order(market, "market", "sell", 0.1, None, {"takeProfitPrice": 22000}),
    ]
    ids = [order["id"] for order in placed]
    check([order["id"] for order in exchange.fetch_open_orders(market)] == ids, "open orders")
    for id in ids[:2]:
        check(exchange.fetch_order(id, market)["status"] == "open", id)
        exchange.cancel_order(id, market)
    exchange.cancel_all_orders(market)
    check(exchange.fetch_open_orders(market) == [], "all are cancelled")
    try:
        exchange.cancel_order(ids[0], market)
        sys.exit("wrong: a closed order was cancelled")
    except library.OrderNotFound:
        pass
    prices = {"price": "21000", "stopPrice": "19000", "quantity": "0.1"}
    pair = exchange.privatePostOrderOco({"symbol": SYMBOL, "side": "SELL", **prices})
    check(len(pair["orderReports"]) == 2, pair)
    check(len(exchange.privateGetOpenOrderList()) == 1, "open lists")
    list_id = {"orderListId": pair["orderListId"]}
    check(exchange.privateGetOrderList(list_id)["listOrderStatus"] == "EXECUTING", pair)
    ended = exchange.privateDeleteOrderList({"symbol": SYMBOL, **list_id})
    check(ended["listOrderStatus"] == "ALL_DONE", ended)
    check(exchange.fetch_balance()["BTC"]["used"] == 0, "balance")
    check(len(exchange.fetch_trades(market)) == 1, "trades")


if __name__ == "__main__":
    {"python-binance": python_binance, "ccxt": ccxt}[sys.argv[1]](*sys.argv[2:])
