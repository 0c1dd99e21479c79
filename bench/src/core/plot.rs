//! The growth curves as an SVG picture, one panel each, sizes on a logarithmic axis. Called by
//! [`crate::cli`].

use std::fmt::Write;

use super::growth::{Curve, GrowthReport, Point};

/// Pixels of a panel, and what of it is around the axes.
const WIDTH: u64 = 420;
const HEIGHT: u64 = 280;
const LEFT: u64 = 60;
const BOTTOM: u64 = 40;
const TOP: u64 = 30;
const RIGHT: u64 = 20;
/// Fractions of a pixel that are kept.
const FINE: u64 = 10;

/// The picture.
#[must_use]
pub fn svg(report: &GrowthReport) -> String {
    let width = WIDTH * report.curves.len() as u64;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"11\">\n\
         <rect width=\"{width}\" height=\"{HEIGHT}\" fill=\"white\"/>\n"
    );
    for (index, curve) in (0..).zip(&report.curves) {
        panel(&mut svg, WIDTH * index, curve);
    }
    svg.push_str("</svg>\n");
    svg
}

/// Binary logarithm in 1024ths.
fn logarithm(size: u32) -> u64 {
    let whole = size.max(1).ilog2();
    let rest = (u64::from(size) << 10 >> whole) - 1024;
    u64::from(whole) * 1024 + rest
}

/// The next of 1, 2, 5, 10, 20 ... from `value` on.
fn round_up(value: u64) -> u64 {
    let mut step = 1;
    loop {
        for factor in [1, 2, 5] {
            if step * factor >= value {
                return step * factor;
            }
        }
        step *= 10;
    }
}

fn pixels(fine: u64) -> String {
    format!("{}.{}", fine / FINE, fine % FINE)
}

fn panel(svg: &mut String, x: u64, curve: &Curve) {
    let Curve { name, points } = curve;
    let [Some(first), Some(last)] = [points.first(), points.last()] else { return };
    let highest = points.iter().map(|point| point.picoseconds).max().unwrap_or(0);
    let top_ns = round_up(highest.div_ceil(1000).max(1));
    let (from, span) =
        (logarithm(first.size), (logarithm(last.size) - logarithm(first.size)).max(1));
    let across = (WIDTH - LEFT - RIGHT) * FINE;
    let up = (HEIGHT - TOP - BOTTOM) * FINE;
    let at = |point: &Point| {
        let right = (x + LEFT) * FINE + (logarithm(point.size) - from) * across / span;
        let down = (HEIGHT - BOTTOM) * FINE - point.picoseconds * up / (top_ns * 1000);
        (pixels(right), pixels(down))
    };
    let (left, base) = (x + LEFT, HEIGHT - BOTTOM);
    put(svg, format_args!("<text x=\"{left}\" y=\"18\" font-weight=\"bold\">{name}</text>"));
    for quarter in 0..=4 {
        let y = pixels(base * FINE - up * quarter / 4);
        let right = x + WIDTH - RIGHT;
        let line = format_args!(
            "<line x1=\"{left}\" y1=\"{y}\" x2=\"{right}\" y2=\"{y}\" stroke=\"#ddd\"/>"
        );
        put(svg, line);
        let hundredths = top_ns * quarter * 25;
        let (whole, rest) = (hundredths / 100, hundredths % 100);
        let label = if rest == 0 { format!("{whole} ns") } else { format!("{whole}.{rest:02} ns") };
        let text = left - 6;
        put(svg, format_args!("<text x=\"{text}\" y=\"{y}\" text-anchor=\"end\">{label}</text>"));
    }
    let places: Vec<String> = points.iter().map(at).map(|(x, y)| format!("{x},{y}")).collect();
    let line = places.join(" ");
    put(svg, format_args!("<polyline points=\"{line}\" fill=\"none\" stroke=\"#06c\"/>"));
    for point in points {
        let (x, y) = at(point);
        put(svg, format_args!("<circle cx=\"{x}\" cy=\"{y}\" r=\"3\" fill=\"#06c\"/>"));
        let (label, size) = (base + 16, point.size);
        put(
            svg,
            format_args!("<text x=\"{x}\" y=\"{label}\" text-anchor=\"middle\">{size}</text>"),
        );
    }
}

fn put(svg: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    let _infallible = writeln!(svg, "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Machine;

    #[test]
    fn curves_lie_within_their_panels() {
        let point = |size, picoseconds| Point { size, picoseconds, to_first: 100 };
        let curve = |points| Curve { name: "orders", points };
        let report = GrowthReport {
            machine: Machine::here(),
            rounds: 1,
            curves: vec![
                curve(vec![point(1, 20_000), point(10, 40_000), point(100, 60_000)]),
                curve(vec![point(7, 5)]),
                curve(vec![]),
            ],
            calm: [1, 2],
            calm_ratio: 200,
            goals: vec![],
        };
        let svg = svg(&report);
        assert_eq!(svg.matches("<circle").count(), 4);
        assert!(svg.contains("100 ns"), "the axis ends at a round figure: {svg}");
        assert!(svg.contains("points=\"60.0,198.0 "), "the first at the left, a fifth up: {svg}");
        assert_eq!((round_up(1), round_up(3), round_up(51), round_up(200)), (1, 5, 100, 200));
        assert_eq!((logarithm(1), logarithm(2), logarithm(3)), (0, 1024, 1536));
    }
}
