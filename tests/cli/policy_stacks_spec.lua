-- SPDX-License-Identifier: Apache-2.0
-- Whole stacks of layers on the command line: diff on both sides, test under the layers below.

local files = require "policy_files"
local program = require "program"

local company = [[reject { id = "narrow", tensor_parallel = over(4), message = "m", final = true }]]
local hall = [[reject { id = "shallow", pipeline_parallel = over(8), message = "m" }]]
local team = [[disable { id = "shallow", reason = "a deep model" }]]

local function written()
  return files.write("company.lua", company), files.write("hall.lua", hall), files.write("team.lua", team)
end

local spec = files.write("spec.json", [[{ "cluster": { "gpus": 256, "accelerator": "H100-SXM", "network": { "fabric": "infiniband", "per_gpu": "400Gbps" } },
  "model": { "architecture": "dense", "total": "70B", "layers": 80 }, "training": { "tokens": "1T" }, "parallelism": { "pipeline": 16, "tensor": 4 } }]])

describe("policy diff", function()
  it("takes whole stacks of layers on each side", function()
    local first, second, third = written()
    local result = program.run(string.format("policy diff --old %s --old %s --new %s --new %s --new %s %s --fail-on loosened", first, second,
                                             first, second, third, spec))
    assert.equal(1, result.status, result.stderr)
    assert.matches("shallow", result.stdout)
    assert.equal(0, program.run(string.format("policy diff --old %s --old %s --new %s --new %s %s --fail-on any", first, second, first, second,
                                              spec)).status)
  end)

  it("says what another default policy changes for a site that is pinned to the one it was written for", function()
    local saved = files.directory { ["all.lua"] = "" }
    local copy = "rm %s/all.lua && cp policies/default/*.lua %s && sed -i '/max_pipeline_depth/s/value = 64/value = 8/' %s/parameters.lua"
    assert(os.execute(copy:format(saved, saved, saved)))
    local digest = program.run("policy show --files --policies " .. saved).stdout:match "\n(%x+)  default\n"
    local site = files.write("site.lua", string.format("pin { default = %q } set { tie_fraction = '2%%' }", digest))
    assert.equal(0, program.run("policy show --policies " .. saved .. " --policy " .. site).status)
    local refused = program.run("policy show --policy " .. site)
    assert.equal(6, refused.status)
    assert.matches("pinned to the default policy " .. digest, refused.stderr, 1, true)
    local changes = program.run(string.format("policy diff --old-policies %s --old %s --new %s %s --fail-on loosened", saved, site, site, spec))
    assert.equal(1, changes.status, changes.stderr)
    assert.matches("too_deep", changes.stdout)
  end)

  it("asks for two sides", function()
    local result = program.run("policy diff default")
    assert.equal(2, result.status)
    assert.matches("two policies are expected", result.stderr)
  end)
end)

describe("policy pin", function()
  -- A default that was another: pipelines of at most 8 stages, in a file more.
  local function other_default()
    local folder = files.directory { ["extra.lua"] = "reject { id = 'extra', tensor_parallel = over(512), message = 'm' }" }
    assert(os.execute(string.format("cp policies/default/*.lua %s && sed -i '/max_pipeline_depth/s/value = 64/value = 8/' %s/parameters.lua",
                                    folder, folder)))
    return folder
  end
  local function pin(...) return program.run("policy pin " .. string.format(...)) end
  local function text_of(path)
    local file <close> = assert(io.open(path))
    return file:read "a"
  end

  it("saves the default and states which it is, once", function()
    local site = files.write("site.lua", "-- mine\nsite 'mine'\nset { tie_fraction = '2%' }\n")
    local first = pin("%s", site)
    assert.equal(0, first.status, first.stderr)
    local digest = first.stdout:match "default policy (%x+)"
    assert.equal(string.format("-- mine\nsite 'mine'\npin { default = %q }\nset { tie_fraction = '2%%' }\n", digest), text_of(site))
    assert.equal(0, program.run(string.format("policy show --policy %s --policies %s", site, (site:gsub("%.lua$", ".default")))).status)
    local again = pin("%s", site)
    assert.same({ 0, true }, { again.status, again.stdout:find("which this is", 1, true) ~= nil })
    local nameless = files.write("site.lua", "set { tie_fraction = '2%' }")
    assert.equal(0, pin("%s", nameless).status)
    assert.equal(string.format("set { tie_fraction = '2%%' }\npin { default = %q }\n", digest), text_of(nameless))
  end)

  it("is written where it holds: not into comments, strings and parentheses, nor behind a return", function()
    local digest = program.run("policy show --files").stdout:match "\n(%x+)  default\n"
    local function pinned(text, wanted)
      local site = files.write("site.lua", text)
      local result = pin("%s", site)
      assert.equal(0, result.status, result.stderr)
      assert.equal((wanted:gsub("PIN", string.format("pin { default = %q }", digest))), text_of(site))
      assert.matches("\n" .. digest .. "  default\n", program.run("policy show --files --policy " .. site).stdout)
    end
    local set = "set { tie_fraction = '2%' }\n"
    pinned("--[[\nsite \"x\"\n]]\n" .. set, "--[[\nsite \"x\"\n]]\n" .. set .. "PIN\n")
    local long = "local text = [[\nsite \"x\"\n]]\nsite(\n\"multi\"\n) -- mine\n"
    pinned(long .. set, long .. "PIN\n" .. set)
    pinned("site 'x' set {\n tie_fraction = '2%' }\n", "site 'x'\nPIN set {\n tie_fraction = '2%' }\n")
    pinned(set .. "return {}", "PIN\n" .. set .. "return {}")
    pinned("site 'x'\r\n" .. set, "site 'x'\r\nPIN\r\n" .. set)
  end)

  it("is replaced in capitals too, and where it cannot be nothing is written and the line to write is told", function()
    local folder = other_default()
    local old = program.run("policy show --files --policies " .. folder).stdout:match "\n(%x+)  default\n"
    local new = program.run("policy show --files").stdout:match "\n(%x+)  default\n"
    local function taken(text, status)
      local site = files.write("site.lua", text)
      assert(os.execute(string.format("cp -r %s %s", folder, (site:gsub("%.lua$", ".default")))))
      local result = pin("%s %s --take", site, spec)
      assert.equal(status, result.status, result.stderr)
      local shown = program.run("policy show --files --policies " .. site:gsub("%.lua$", ".default")).stdout
      return text_of(site), shown:match "\n(%x+)  default\n", result.stderr
    end
    local text, saved = taken(string.format("-- of %s\npin { default = %q }", old, old:upper()), 0)
    assert.same({ string.format("-- of %s\npin { default = %q }", old, new), new }, { text, saved })
    local built = string.format("pin { default = %q .. %q } set { tie_fraction = '2%%' }", old:sub(1, 8), old:sub(9))
    local untouched, kept, problem = taken(built, 2)
    assert.same({ built, old }, { untouched, kept })
    assert.matches("nothing was written; write it by hand: pin { default = \"" .. new .. "\" }\n", problem)
  end)

  it("stays as it was, with its saved default, where one of the two cannot be written", function()
    local site, saved = files.write("site.lua", "set { tie_fraction = '2%' }"), files.write("file", "no directory")
    local result = pin("%s --saved %s/in", site, saved)
    assert.equal(2, result.status)
    assert.equal("set { tie_fraction = '2%' }", text_of(site))
    local other = files.directory { ["warnings.lua"] = "-- mine", ["own.lua"] = "-- mine too" }
    assert.equal(2, pin("%s --saved %s", site, other).status)
    assert.same({ "-- mine", "set { tie_fraction = '2%' }" }, { text_of(other .. "/warnings.lua"), text_of(site) })
  end)

  it("is the site's own, not that of a layer under it whose path is the end of the site's", function()
    local folder = files.directory { ["site.lua"] = "site 'company' set { tie_fraction = '2%' }" }
    assert(os.execute("mkdir " .. folder .. "/hall"))
    files.write("site.lua", "site 'hall' set { small_run_gpus = 64 }", folder .. "/hall")
    local here = "cd " .. folder .. " && " .. os.getenv "PIPEPLAN" .. " policy pin "
    assert(os.execute(here .. "site.lua >pinned.txt"))
    assert(os.execute(here .. "hall/site.lua --policy site.lua >pinned.txt"))
    assert.matches("^hall/site.lua: pinned to", text_of(folder .. "/pinned.txt"))
    assert.matches("pin { default", text_of(folder .. "/hall/site.lua"), 1, true)
    assert.is_nil(text_of(folder .. "/site.lua"):find("pin.*pin"))
  end)

  it("shows what another default changes, and takes it when told to", function()
    local folder, site = other_default(), files.write("site.lua", "site 'mine'\nset { tie_fraction = '2%' }\n")
    local old = pin("%s --policies %s", site, folder)
    assert.equal(0, old.status, old.stderr)
    assert.equal(5, pin("%s", site).status)  -- no spec to see it on
    local shown = pin("%s %s", site, spec)
    assert.equal(1, shown.status, shown.stderr)
    assert.matches("newly accepted: too_deep", shown.stdout, 1, true)
    assert.matches("still pinned to " .. old.stdout:match "default policy (%x+)", shown.stdout, 1, true)
    assert.equal(6, program.run("policy show --policy " .. site).status)
    assert.equal(0, pin("%s %s --take", site, spec).status)
    assert.equal(0, program.run("policy show --policy " .. site).status)
    assert.is_nil(io.open((site:gsub("%.lua$", ".default/extra.lua"))))
  end)

  it("trusts no saved default that is another", function()
    local site, folder = files.write("site.lua", "site 'mine'\nset { tie_fraction = '2%' }\n"), other_default()
    assert.equal(0, pin("%s --policies %s", site, folder).status)
    assert(os.execute("rm " .. site:gsub("%.lua$", ".default/extra.lua")))
    local problem = pin("%s %s", site, spec)
    assert.equal(2, problem.status)
    assert.matches("holds the default %x+, and the site is pinned to %x+", problem.stderr)
    local spoiled = files.write("site.lua", "set { tie_fraction = '2%' }")
    local other = pin("%s --saved %s", spoiled, folder)
    assert.same({ 2, true }, { other.status, other.stderr:find("none of the default's", 1, true) ~= nil })
    assert.equal("set { tie_fraction = '2%' }", text_of(spoiled))
  end)
end)

describe("policy test", function()
  it("runs the tests of a layer under the layers below it", function()
    local first = written()
    local test = files.write("team_spec.lua", string.format([[
      local site = require("pipeplan").policy(%q)
      it("is narrow", function()
        assert.decided(site:plan { %q, tensor = 8, pipeline = 8 }, "rejected", "narrow")
      end)]], files.write("team.lua", "set { tie_fraction = '2%' }"), spec))
    assert.equal(1, program.run("policy test " .. test).status)
    local result = program.run(string.format("policy test --policy %s %s", first, test))
    assert.equal(0, result.status, result.stdout)
  end)
end)

describe("policy show", function()
  it("has another digest where pipeplan is built from other text, be it only read in place of what is built in", function()
    local lua = files.directory {}
    assert(os.execute(string.format("cp -r stdlib/. '%s'", lua)))
    local function digests(options)
      return program.run("policy show --files --date 2026-11-27" .. options).stdout:match "^digest +(%x+)\npipeplan +%S+ +built from (%x+)\n"
    end
    local one, built = digests(" --stdlib " .. lua)
    assert.same({ one, built }, { digests(" --stdlib " .. lua) })
    assert(os.execute(string.format("echo '-- a change' >> '%s/plan/host.lua'", lua)))
    local other, rebuilt = digests(" --stdlib " .. lua)
    assert.is_true(one ~= other and built ~= rebuilt)
    assert.is_true(built ~= select(2, digests ""))
  end)

  it("names every file that was read, with its digest, and what else a plan follows from", function()
    local folder = files.directory { ["site.lua"] = "local l = require 'limits' reject { id = 'x', gpus = over(l), message = 'm' }" }
    files.write("limits.lua", "return 8", folder)
    local text = program.run("policy show --files --date 2026-11-27 --policy " .. folder .. "/site.lua").stdout
    assert.matches("\n  %x+  " .. folder:gsub("%p", "%%%0") .. "/limits.lua\n", text)
    assert.matches("\npipeplan   [%d.]+  built from %x+\ncatalogue  %x+\ndate       2026%-11%-27\n", text)
  end)
end)
