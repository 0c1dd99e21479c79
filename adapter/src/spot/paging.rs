//! What lists of the past are asked for by: how many entries, from which number, between which times.
//! Called by the handlers of market data and of an account's history.

use super::intake::Intake;
use crate::api_error::ApiError;
use crate::parameters::ParameterError;

/// Entries of a page if none is asked for, and at the most (spot contract §8 Page sizes).
pub(super) const PAGE: (u32, u32) = (500, 1000);

/// Reads `limit`; more than the most is the most (facts §7).
pub(super) fn page_size(intake: &Intake<'_>) -> Result<usize, ParameterError> {
    Ok(intake.parameters.page_size("limit", PAGE.0, PAGE.1)? as usize)
}

/// Reads an optional number or time, which is never negative.
pub(super) fn number(
    intake: &Intake<'_>,
    name: &'static str,
) -> Result<Option<u64>, ParameterError> {
    Ok(intake.parameters.long(name)?.and_then(|value| u64::try_from(value).ok()))
}

/// From when to when, ms since the epoch; both ends belong to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: Option<u64>,
    pub(super) end: Option<u64>,
}

impl Span {
    /// Reads `startTime` and `endTime`.
    pub(super) fn read(intake: &Intake<'_>) -> Result<Self, ParameterError> {
        Ok(Self { start: number(intake, "startTime")?, end: number(intake, "endTime")? })
    }

    /// True if either end is given.
    pub(super) const fn is_given(&self) -> bool {
        self.start.is_some() || self.end.is_some()
    }

    /// Refuses an end before the start, and more than `longest_ms` between the two, which `hours` is
    /// told of.
    pub(super) fn check(&self, longest_ms: u64, hours: u32) -> Result<(), ApiError> {
        self.check_order()?;
        match (self.start, self.end) {
            (Some(start), Some(end)) if end - start > longest_ms => {
                Err(ApiError::span_too_long(hours))
            }
            _ => Ok(()),
        }
    }

    /// Refuses an end before the start.
    pub(super) fn check_order(&self) -> Result<(), ApiError> {
        if self.start.zip(self.end).is_some_and(|(start, end)| start > end) {
            return Err(ApiError::start_after_end());
        }
        Ok(())
    }

    /// True for a moment that is not behind its end.
    pub(super) fn reaches(&self, time_ms: u64) -> bool {
        self.end.is_none_or(|end| time_ms <= end)
    }

    /// True for a moment within it.
    pub(super) fn holds(&self, time_ms: u64) -> bool {
        self.start.is_none_or(|start| time_ms >= start) && self.reaches(time_ms)
    }
}
