//! Reads the two files of a recording: order messages and top-of-book states, in the layout of the
//! LOBSTER academic data, as CSV or gzip of it. Called by [`crate::replay`].
//!
//! The files are judged line by line: any malformed line fails the whole reading, which names the
//! first of them with their numbers.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use thiserror::Error;
use touchline_protocol::message::enums::Side;

use super::book::Top;

/// Longest line in bytes; a well-formed one has less than 100.
const LINE_MAX: u64 = 256;

/// Malformed lines that an error names.
const NAMED_MAX: usize = 20;

/// Largest price, in 10⁻⁴ of the currency: such a price times [`SIZE_MAX`] fits the engine's units.
const PRICE_MAX: i64 = 10_000_000_000;

/// Largest size, in whole units.
const SIZE_MAX: i64 = 1_000_000_000;

/// What a row of the message file says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// 1: a new limit order.
    Add,
    /// 2: part of an order was cancelled.
    Reduce,
    /// 3: an order was cancelled.
    Cancel,
    /// 4: a visible order was executed.
    Execute,
    /// 5: a hidden order was executed.
    ExecuteHidden,
    /// 7: trading was halted or resumed.
    Halt,
}

/// A row of the message file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Row {
    /// Nanoseconds after midnight.
    pub time_ns: u64,
    /// What happened.
    pub event: Event,
    /// The exchange's number of the order; 0 for hidden executions and halts.
    pub order: u64,
    /// Whole units (shares).
    pub size: i64,
    /// In 10⁻⁴ of the currency.
    pub price: i64,
    /// Side of the resting order.
    pub side: Side,
}

/// A line that is not a row.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("line {line}: {problem}")]
pub struct Malformed {
    /// Counted from 1.
    pub line: usize,
    /// What is wrong with it.
    pub problem: String,
}

/// Why a file could not be read.
#[derive(Debug, Error)]
pub enum RowsError {
    /// The system or the gzip decoder refused.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// What was said.
        source: io::Error,
    },
    /// Lines are malformed.
    #[error("{path}: {count} malformed line(s)\n{}", .first.iter().map(|one| format!("  {one}")).collect::<Vec<_>>().join("\n"))]
    Malformed {
        /// The file.
        path: PathBuf,
        /// How many lines.
        count: usize,
        /// The first of them.
        first: Vec<Malformed>,
    },
    /// There is not one row.
    #[error("{path}: no rows")]
    Empty {
        /// The file.
        path: PathBuf,
    },
}

/// Reads a message file.
///
/// # Errors
/// See [`RowsError`].
pub fn read_messages(path: &Path) -> Result<Vec<Row>, RowsError> {
    read(path, parse_message)
}

/// Reads a file of top-of-book states. A missing side (size 0) is an empty one.
///
/// # Errors
/// See [`RowsError`].
pub fn read_top_of_book(path: &Path) -> Result<Vec<Top>, RowsError> {
    read(path, parse_top)
}

fn read<T>(path: &Path, parse: impl Fn(&str) -> Result<T, String>) -> Result<Vec<T>, RowsError> {
    let failed = |source| RowsError::File { path: path.to_owned(), source };
    let (rows, count, first) = parse_lines(open(path).map_err(failed)?, parse).map_err(failed)?;
    if count > 0 {
        return Err(RowsError::Malformed { path: path.to_owned(), count, first });
    }
    if rows.is_empty() {
        return Err(RowsError::Empty { path: path.to_owned() });
    }
    Ok(rows)
}

/// Opens `path`, unpacked if it begins with the mark of gzip.
fn open(path: &Path) -> io::Result<Box<dyn BufRead>> {
    let mut file = BufReader::new(File::open(path)?);
    Ok(if file.fill_buf()?.starts_with(&[0x1f, 0x8b]) {
        Box::new(BufReader::new(MultiGzDecoder::new(file)))
    } else {
        Box::new(file)
    })
}

type Parsed<T> = (Vec<T>, usize, Vec<Malformed>);

fn parse_lines<T>(
    mut input: impl BufRead,
    parse: impl Fn(&str) -> Result<T, String>,
) -> io::Result<Parsed<T>> {
    let (mut rows, mut count, mut first) = (Vec::new(), 0, Vec::new());
    let mut bytes = Vec::new();
    for line in 1.. {
        bytes.clear();
        if input.by_ref().take(LINE_MAX).read_until(b'\n', &mut bytes)? == 0 {
            break;
        }
        let too_long = bytes.len() as u64 == LINE_MAX && bytes.last() != Some(&b'\n');
        let text = str::from_utf8(&bytes).map(str::trim_end);
        let parsed = match text {
            _ if too_long => Err(format!("longer than {LINE_MAX} bytes; reading ends here")),
            Ok(text) => parse(text),
            Err(_) => Err("not UTF-8".to_owned()),
        };
        match parsed {
            Ok(row) => rows.push(row),
            Err(problem) => {
                count += 1;
                if first.len() < NAMED_MAX {
                    first.push(Malformed { line, problem });
                }
            }
        }
        if too_long {
            break;
        }
    }
    Ok((rows, count, first))
}

fn parse_message(line: &str) -> Result<Row, String> {
    let [time, event, order, size, price, side] = fields(line)?;
    let event = match event {
        "1" => Event::Add,
        "2" => Event::Reduce,
        "3" => Event::Cancel,
        "4" => Event::Execute,
        "5" => Event::ExecuteHidden,
        "7" => Event::Halt,
        _ => return Err(format!("event {event:?} is not one of 1, 2, 3, 4, 5, 7")),
    };
    let side = match side {
        "1" => Side::Buy,
        "-1" => Side::Sell,
        _ => return Err(format!("direction {side:?} is neither 1 nor -1")),
    };
    let row = Row {
        time_ns: nanoseconds(time)?,
        event,
        order: number("order id", order)?,
        size: number("size", size)?,
        price: number("price", price)?,
        side,
    };
    // A halt carries its meaning in the price field (-1, 0 or 1) and has no size.
    if event != Event::Halt {
        in_range("size", row.size, SIZE_MAX)?;
        in_range("price", row.price, PRICE_MAX)?;
    }
    if row.order == 0 && !matches!(event, Event::ExecuteHidden | Event::Halt) {
        return Err("order id 0".to_owned());
    }
    Ok(row)
}

fn parse_top(line: &str) -> Result<Top, String> {
    let [ask_price, ask_size, bid_price, bid_size] = fields(line)?;
    let side = |name: &str, price, size| {
        let (price, size): (i64, i64) = (number(name, price)?, number(name, size)?);
        if size == 0 {
            return Ok((0, 0));
        }
        in_range(name, price, PRICE_MAX)?;
        in_range(name, size, SIZE_MAX)?;
        Ok::<_, String>((price, size))
    };
    let (ask_price, ask_size) = side("ask", ask_price, ask_size)?;
    let (bid_price, bid_size) = side("bid", bid_price, bid_size)?;
    Ok(Top { ask_price, ask_size, bid_price, bid_size })
}

fn fields<const N: usize>(line: &str) -> Result<[&str; N], String> {
    let fields: Vec<&str> = line.split(',').collect();
    let found = fields.len();
    fields.try_into().map_err(|_| format!("{found} fields, expected {N}"))
}

fn number<T: std::str::FromStr>(name: &str, text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("{name} {text:?} is not a whole number in range"))
}

fn in_range(name: &str, value: i64, most: i64) -> Result<(), String> {
    if (1..=most).contains(&value) {
        Ok(())
    } else {
        Err(format!("{name} {value} is not between 1 and {most}"))
    }
}

/// Seconds with decimals, as nanoseconds. Some rows carry more than nine decimals, the noise of a
/// binary fraction: those are cut off.
fn nanoseconds(text: &str) -> Result<u64, String> {
    let wrong = || format!("time {text:?} is not seconds of a day with at most 18 decimals");
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(seconds) || !digits(fraction) || fraction.len() > 18 {
        return Err(wrong());
    }
    let seconds: u64 =
        seconds.parse().ok().filter(|&seconds| seconds < 86_400).ok_or_else(wrong)?;
    let fraction: u64 = format!("{fraction:0<9}")[..9].parse().map_err(|_| wrong())?;
    Ok(seconds * 1_000_000_000 + fraction)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use proptest::prelude::*;
    use std::io::Write;

    #[test]
    fn rows_are_read_as_the_layout_says() {
        let row = parse_message("34200.00426064,1,16113584,18,5853200,1").unwrap();
        assert_eq!(
            row,
            Row {
                time_ns: 34_200_004_260_640,
                event: Event::Add,
                order: 16_113_584,
                size: 18,
                price: 5_853_200,
                side: Side::Buy,
            }
        );
        assert_eq!(parse_message("34200,7,0,0,-1,-1").unwrap().event, Event::Halt);
        let noisy = parse_message("35821.088778456004,1,5,18,5853200,1").unwrap();
        assert_eq!(noisy.time_ns, 35_821_088_778_456);
        let top = parse_top("5859400,200,5853300,18").unwrap();
        assert_eq!((top.ask_price, top.bid_size), (5_859_400, 18));
        assert!(!parse_top("9999999999,0,5853300,18").unwrap().is_two_sided());
    }

    #[test]
    fn malformed_rows_are_refused() {
        for line in [
            "",
            "34200.0,1,5,18,5853200",
            "34200.0,1,5,18,5853200,1,0",
            "34200.0,6,5,18,5853200,1",
            "34200.0,1,5,18,5853200,0",
            "34200.0,1,0,18,5853200,1",
            "34200.0,1,-5,18,5853200,1",
            "34200.0,1,5,0,5853200,1",
            "34200.0,1,5,-18,5853200,1",
            "34200.0,1,5,1000000001,5853200,1",
            "34200.0,1,5,18,0,1",
            "34200.0,1,5,18,99999999999999999999,1",
            "34200.0,1,5,1.5,5853200,1",
            "86400.0,1,5,18,5853200,1",
            "-1.0,1,5,18,5853200,1",
            "34200.0123456789012345678,1,5,18,5853200,1",
            "+34200.0,1,5,18,5853200,1",
            "nan,1,5,18,5853200,1",
        ] {
            assert!(parse_message(line).is_err(), "{line:?}");
        }
        assert!(parse_top("5859400,200,5853300").is_err());
        assert!(parse_top("5859400,-200,5853300,18").is_err());
    }

    #[test]
    fn errors_name_the_line_and_files_may_be_packed() {
        let text = "34200.0,1,5,18,5853200,1\nnonsense\n34200.0,3,5,18,5853200,1\n1,2\n";
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(text.as_bytes()).unwrap();
        for content in [text.as_bytes().to_vec(), packed.finish().unwrap()] {
            let mut file = tempfile::NamedTempFile::new().unwrap();
            file.write_all(&content).unwrap();
            let error = read_messages(file.path()).unwrap_err();
            let RowsError::Malformed { count, first, .. } = &error else { panic!("{error}") };
            assert_eq!((*count, first[0].line, first[1].line), (2, 2, 4));
            assert!(error.to_string().contains("line 2: 1 fields, expected 6"), "{error}");
        }
    }

    #[test]
    fn a_line_without_end_ends_the_reading() {
        let endless = BufReader::new(io::repeat(b'1'));
        let (rows, count, first) = parse_lines(endless, parse_message).unwrap();
        assert_eq!((rows.len(), count, first[0].line), (0, 1, 1));
    }

    #[test]
    fn an_empty_file_and_a_missing_one_are_errors() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(matches!(read_messages(file.path()), Err(RowsError::Empty { .. })));
        let missing = file.path().with_extension("missing");
        assert!(matches!(read_messages(&missing), Err(RowsError::File { .. })));
    }

    proptest! {
        #[test]
        fn no_line_panics(line in ".{0,80}") {
            let _row = parse_message(&line);
            let _top = parse_top(&line);
        }

        #[test]
        fn written_rows_come_back(
            time_ns in 0..86_400_000_000_000u64, order in 1..u64::MAX,
            size in 1..=SIZE_MAX, price in 1..=PRICE_MAX, buys: bool,
        ) {
            let side = if buys { Side::Buy } else { Side::Sell };
            let line = format!(
                "{}.{:09},4,{order},{size},{price},{}",
                time_ns / 1_000_000_000, time_ns % 1_000_000_000, if buys { 1 } else { -1 },
            );
            let row = Row { time_ns, event: Event::Execute, order, size, price, side };
            prop_assert_eq!(parse_message(&line), Ok(row));
        }
    }
}
