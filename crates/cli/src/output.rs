//! Where results and remarks go: one writer for each, and whether they may be coloured.
//! Everything a command prints passes through here; a closed pipe is an error value, never a panic.

use std::{
    fmt::Display,
    io::{self, BufWriter, Write},
};

use crate::{
    colour::{Paint, Tone},
    connection::ColourChoice,
    environment::Environment,
    error::CliError,
};

/// The two streams of a command. Results go to `out`, everything else to `err`.
pub struct Output {
    out: Box<dyn Write + Send>,
    err: Box<dyn Write + Send>,
    paint_out: Paint,
    paint_err: Paint,
}

impl Output {
    /// The streams of this process.
    pub fn stdio(choice: ColourChoice, env: &Environment) -> Self {
        let paint = |is_terminal: bool| match choice {
            ColourChoice::Always => Paint::Ansi,
            ColourChoice::Never => Paint::Plain,
            ColourChoice::Auto if is_terminal && !env.no_colour => Paint::Ansi,
            ColourChoice::Auto => Paint::Plain,
        };
        Self {
            out: Box::new(BufWriter::new(io::stdout())),
            err: Box::new(io::stderr()),
            paint_out: paint(env.stdout_is_terminal),
            paint_err: paint(env.stderr_is_terminal),
        }
    }

    /// Any two writers, without colours.
    pub fn to_writers(out: Box<dyn Write + Send>, err: Box<dyn Write + Send>) -> Self {
        Self { out, err, paint_out: Paint::Plain, paint_err: Paint::Plain }
    }

    /// How results may be coloured.
    pub fn paint(&self) -> Paint {
        self.paint_out
    }

    pub fn line(&mut self, text: impl Display) -> io::Result<()> {
        writeln!(self.out, "{text}")
    }

    pub fn text(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(text.as_bytes())
    }

    /// A remark for the person at the terminal; it is not part of the result.
    pub fn remark(&mut self, text: impl Display) -> io::Result<()> {
        self.out.flush()?;
        writeln!(self.err, "{text}")
    }

    pub fn warning(&mut self, text: impl Display) -> io::Result<()> {
        let label = self.paint_err.apply(Tone::Fair, "warning:");
        self.remark(format_args!("{label} {text}"))
    }

    /// Reports a failure with its next step. A closed pipe is nobody's concern.
    pub fn error(&mut self, error: &CliError) -> io::Result<()> {
        if matches!(error, CliError::Output(cause) if cause.kind() == io::ErrorKind::BrokenPipe) {
            return Ok(());
        }
        // What was printed before the failure comes first, but its own failure must not hide this one.
        let flushed = self.out.flush();
        let label = self.paint_err.apply(Tone::Bad, "error:");
        writeln!(self.err, "{label} {error}")?;
        if let Some(hint) = error.hint() {
            writeln!(self.err, "  {hint}")?;
        }
        flushed
    }

    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;
    use std::sync::{Arc, Mutex};

    /// What a command printed, readable while the `Output` lives.
    #[derive(Clone, Default)]
    pub struct Captured(Arc<Mutex<Vec<u8>>>);

    impl Captured {
        pub fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    impl Write for Captured {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// An `Output` with what it printed to its two streams.
    pub fn captured() -> (Output, Captured, Captured) {
        let (out, err) = (Captured::default(), Captured::default());
        (Output::to_writers(Box::new(out.clone()), Box::new(err.clone())), out, err)
    }
}

#[cfg(test)]
mod tests {
    use super::{testing::captured, *};

    #[test]
    fn an_error_is_followed_by_its_next_step() {
        let (mut output, out, err) = captured();
        let error =
            CliError::UnknownKind { asked: "volums".into(), near: vec!["volumes.longhorn.io".into()] };
        output.error(&error).unwrap();
        assert_eq!(out.text(), "");
        insta::assert_snapshot!(err.text(), @r#"
        error: the API has no kind "volums"
          did you mean volumes.longhorn.io? `granary kinds` lists what this API serves
        "#);
    }

    #[test]
    fn a_reader_that_went_away_is_not_told_about_it() {
        let (mut output, _, err) = captured();
        output.error(&CliError::Output(io::ErrorKind::BrokenPipe.into())).unwrap();
        assert_eq!(err.text(), "");
    }

    #[test]
    fn colours_follow_the_flag_the_terminal_and_no_color() {
        let terminal = Environment { stdout_is_terminal: true, ..Environment::default() };
        let asked_not_to = Environment { no_colour: true, ..terminal.clone() };
        let piped = Environment::default();
        let paint = |choice, env: &Environment| Output::stdio(choice, env).paint();

        assert_eq!(paint(ColourChoice::Auto, &terminal), Paint::Ansi);
        assert_eq!(paint(ColourChoice::Auto, &asked_not_to), Paint::Plain);
        assert_eq!(paint(ColourChoice::Auto, &piped), Paint::Plain);
        assert_eq!(paint(ColourChoice::Always, &piped), Paint::Ansi);
        assert_eq!(paint(ColourChoice::Never, &terminal), Paint::Plain);
    }
}
