-- SPDX-License-Identifier: Apache-2.0
-- document.lua: the page around its sections: one file, nothing fetched (its policy forbids it), nothing that needs the script.

local element = require "pipeplan.report.html.element"
local script = require "pipeplan.report.html.script"
local style = require "pipeplan.report.html.style"

local document = {}

-- A part of the page under its heading. options: id, class, quiet (a heading that only continues the part before).
function document.section(title, content, options)
  options = options or {}
  return element("section", { id = options.id, class = options.class, ["aria-labelledby"] = options.id and options.id .. "-h" },
                 element("h2", { class = options.quiet and "quiet", id = options.id and options.id .. "-h" }, title),
                 element("div", nil, content))
end

-- Folded; open on no page, for what matters is outside.
function document.folded(summary, content)
  return element("details", nil, element("summary", nil, summary), content)
end

-- "default/refusals.lua:12"
function document.place(entry)
  if not entry.file then return entry.layer or "" end
  return element.name(entry.file .. (entry.line and entry.line > 0 and ":" .. entry.line or ""))
end

-- document.write{ title, kind, heading, verdict, sure, sections, numbers } → the page. numbers: JSON of ours, without text from elsewhere.
function document.write(page)
  local head = element("head", nil,
    element("meta", { charset = "utf-8" }),
    element("meta", { name = "viewport", content = "width=device-width,initial-scale=1" }),
    element("meta", { name = "color-scheme", content = "light dark" }),
    element("meta", { ["http-equiv"] = "Content-Security-Policy",
                      content = "default-src 'none';style-src 'unsafe-inline';script-src 'unsafe-inline'" }),
    element("title", nil, page.title .. " (pipeplan)"),
    element("style", nil, element.raw(style)))
  local body = element("body", { class = page.class },
    element("header", nil, element("p", { class = "kind" }, page.kind), element("h1", nil, page.heading),
            element("p", { class = "verdict" }, page.verdict), page.sure and element("p", { class = "sub" }, page.sure)),
    element("main", nil, page.sections),
    page.numbers and element("script", { type = "application/json", id = "d" }, element.raw(page.numbers)),
    element("script", nil, element.raw(script)))
  return "<!doctype html>\n" .. element("html", { lang = "en" }, head, body).text .. "\n"
end

return document
