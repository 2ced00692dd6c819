//! What every page has around its content: head, title, table of contents, footer and script.

use std::fmt::Write;

use super::chart::{DARK, LIGHT, STYLE};

/// Writes all that stands before the content. Titles and links are text without markup.
pub fn open(
    out: &mut String,
    title: &str,
    heading: &str,
    contents: (&str, &[(String, String)]),
) -> std::fmt::Result {
    // The policy makes the browser itself prevent any download.
    writeln!(
        out,
        "<!DOCTYPE html>\n<html xmlns=\"http://www.w3.org/1999/xhtml\" lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<meta name=\"color-scheme\" content=\"light dark\"/>\n\
         <title>{title}</title>\n<style>\n\
         :root {{ {LIGHT} }}\n\
         @media (prefers-color-scheme: dark) {{ :root:not([data-theme=light]) {{ {DARK} }} }}\n\
         :root[data-theme=dark] {{ {DARK} }}\n\
         @media print {{ :root, :root:not([data-theme=light]) {{ {LIGHT} }} }}\n\
         {}{STYLE}</style>\n</head>\n<body>\n<a class=\"skip\" href=\"#content\">To the content</a>",
        include_str!("page.css"),
    )?;
    let (label, links) = contents;
    writeln!(
        out,
        "<header><h1>{heading}</h1>\n<button type=\"button\" id=\"theme\" hidden=\"hidden\">Dark</button></header>\n\
         <nav aria-label=\"{label}\"><ul>"
    )?;
    for (place, text) in links {
        writeln!(out, "<li><a href=\"#{place}\">{text}</a></li>")?;
    }
    writeln!(out, "</ul></nav>\n<main id=\"content\">")
}

/// Writes all that stands behind the content. The footer is markup.
pub fn close(out: &mut String, footer: &str) -> std::fmt::Result {
    writeln!(
        out,
        "</main>\n<footer><p>{footer}</p></footer>\n\
         <p id=\"told\" class=\"unseen\" aria-live=\"polite\"></p>\n<div id=\"tip\" aria-hidden=\"true\" hidden=\"hidden\"></div>\n\
         <script>//<![CDATA[\n{}//]]></script>\n</body>\n</html>",
        include_str!("page.js")
    )
}
