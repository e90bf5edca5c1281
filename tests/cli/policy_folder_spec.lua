-- SPDX-License-Identifier: Apache-2.0
-- What is read of a policy's folder, and what is not: regular files only, each of them in the digest, and the rest named.

local pipeplan = require "pipeplan"
local engine = require "engine"
local files = require "policy_files"
local json = require "cjson"
local program = require "program"

teardown(files.remove)

local function run(arguments)
  -- a reader that waits for a FIFO would wait for ever
  local result = program.run("policy " .. arguments)
  return result.stdout, result.stderr, result.status
end

local function digest(path)
  return (assert((run("show --policy " .. path)):match "\ndigest  (%x+)"))
end

local function sh(command)
  assert(os.execute(command))
end

local site = 'site "hall"\nlocal limits = require "limits"\nset { small_run_gpus = limits.gpus }\n'

-- What cannot be a policy file: how it is made at $f in a folder that has `outside` beside it, and what is said.
local no_files = {
  { "a FIFO", "mkfifo $f", "a FIFO, not a regular file" },
  { "a directory", "mkdir $f", "a directory, not a regular file" },
  { "a device", "ln -s /dev/zero $f", "a link that leads out of the folder" },
  { "a link to nothing", "ln -s nothing.lua $f", "a link to nothing" },
  { "a link to a file outside", "ln -s ../outside.lua $f", "a link that leads out of the folder" },
  { "a link to a file outside by an absolute path", "ln -s /etc/passwd $f", "a link that leads out of the folder" },
  { "a link through a folder that is a link to outside", "ln -s .. up && ln -s up/outside.lua $f", "a link that leads out of the folder" },
  { "a link to itself", "ln -s $f $f", "Too many levels of symbolic links" },
}

-- A folder with that among its files → its path.
local function folder_with(name, command, texts)
  local outer = files.directory { ["outside.lua"] = "return { gpus = 48 }" }
  local folder = outer .. "/hall"
  sh("mkdir " .. folder)
  for file, text in pairs(texts) do files.write(file, text, folder) end
  sh(string.format("cd %s && f=%s && %s", folder, name, command))
  return folder
end

describe("a policy's folder", function()
  for _, case in ipairs(no_files) do
    it("with " .. case[1] .. " among its files is not loaded, and says so", function()
      local folder = folder_with("z.lua", case[2], { ["a.lua"] = "set { small_run_gpus = 64 }" })
      local out, problem, status = run("show --policy " .. folder)
      assert.same({ "", "pipeplan: " .. folder .. "/z.lua: cannot be read: " .. case[3] .. "\n", 6 }, { out, problem, status })
    end)
  end

  it("may hold links to files in it, as mounted configuration does", function()
    local folder = files.directory { ["a.lua"] = site }
    sh("cd " .. folder .. " && mkdir ..2026 && echo 'return { gpus = 48 }' >..2026/limits && ln -s ..2026 ..data && ln -s ..data/limits limits.lua")
    assert.matches("\n  small_run_gpus +48 ", (run("show --policy " .. folder)))
  end)

  it("names what is not read of it", function()
    local folder = files.directory { ["a.lua"] = "set { small_run_gpus = 64 }", ["a_spec.lua"] = "", [".hidden.lua"] = "", ["a.lua.bak"] = "",
                                     ["notes.txt"] = "" }
    sh("mkdir " .. folder .. "/more && touch " .. folder .. "/more/b.lua")
    local names = ".hidden.lua, a.lua.bak, a_spec.lua, more/, notes.txt"
    assert.matches("\nnot read  of " .. folder .. ": " .. names .. "\n", (run("show --policy " .. folder)), 1, true)
    local layer = json.decode((run("show --format json --policy " .. folder))).layers[2]
    assert.equal(names, table.concat(layer.not_read, ", "))
    assert.same({ folder .. "/a.lua" }, layer.files)
    local text, _, status = run("check --no-witnesses --policy " .. folder)
    assert.equal(0, status)
    assert.matches(folder .. ": note[not_read]\n  not read: " .. names .. "\n", text, 1, true)
    assert.is_nil((run "show"):find("not read", 1, true))
    assert.is_nil((run("show --policy " .. folder .. "/a.lua")):find("not read", 1, true))
  end)

  -- What is exchanged while it is read is either the file or refused: never what a link put there leads to.
  it("is judged by what was opened", function()
    local outer = files.directory { ["outside.lua"] = "outside" }
    local folder = outer .. "/hall"
    sh("mkdir " .. folder)
    files.write("inside.lua", "inside", folder)
    sh(string.format("cd %s && (for i in $(seq 40); do ln -s ../outside.lua x && mv -T x z.lua; ln -s inside.lua x && mv -T x z.lua; "
                     .. "mkfifo x && mv -T x z.lua; cp inside.lua x && mv -T x z.lua; done; touch ../done) >/dev/null 2>&1 & ", folder))
    local seen, done = {}
    repeat
      done = io.open(outer .. "/done")
      local text, reason = engine.host.policy_text(folder, "z.lua")
      assert.is_true(text == nil or text == "inside", text)
      seen[text or reason] = true
    until done
    done:close()
    assert.is_true(seen.inside)
    assert.is_true(seen["a link that leads out of the folder"])
  end)
end)

describe("require in a policy file", function()
  for _, case in ipairs(no_files) do
    it("refuses " .. case[1], function()
      local folder = folder_with("limits.lua", case[2], { ["a.lua"] = site })
      local _, problem, status = run("show --policy " .. folder .. "/a.lua")
      assert.equal(6, status)
      assert.equal(string.format("pipeplan: %s/a.lua:2: cannot require '%s/limits.lua': %s\n", folder, folder, case[3]), problem)
    end)
  end

  it("takes a file beside the one that asks, wherever the program runs", function()
    local folder = files.directory { ["a.lua"] = site, ["limits.lua"] = "return { gpus = 48 }" }
    assert.matches("\nlayer +hall: " .. folder .. "/a.lua, " .. folder .. "/limits.lua\n", (run("show --policy " .. folder .. "/a.lua")), 1, false)
    assert.matches("\n  small_run_gpus +48 ", (run("show --policy " .. folder .. "/a.lua")))
  end)

  it("reads nothing while a rule is evaluated", function()
    local path = files.write("a.lua", "reject { id = 'x', message = 'm', when = function(f) return require('limits').gpus > f.gpus end }")
    files.write("limits.lua", "return { gpus = 48 }", path:match "^(.*)/")
    local result = program.run("plan examples/specs/llama-3.1-405b.json --policy " .. path)
    assert.equal(3, result.status)
    assert.matches("write it at the top of the file", result.stderr, 1, true)
  end)
end)

describe("the digest", function()
  it("covers every file that was read, by require too, wherever the folder lies", function()
    local function folder(gpus, more)
      return files.directory { ["a.lua"] = site, ["limits.lua"] = "return { gpus = " .. gpus .. " }", ["notes.txt"] = more }
    end
    assert.equal(digest(folder(48) .. "/a.lua"), digest(folder(48) .. "/a.lua"))
    assert.is_not.equal(digest(folder(48) .. "/a.lua"), digest(folder(49) .. "/a.lua"))
    assert.is_not.equal(digest(folder(48)), digest(folder(49)))
    assert.equal(digest(folder(48, "one")), digest(folder(48, "two")))
    assert.is_not.equal(pipeplan.policy(folder(48) .. "/a.lua").policy.digest, pipeplan.policy(folder(49) .. "/a.lua").policy.digest)
  end)
end)

describe("a file that the user names", function()
  it("may be a pipe, such as <(…) of a shell", function()
    local handle = io.popen(string.format("cd '%s' && env -u LD_PRELOAD bash -c \"'%s' plan <(cat examples/specs/llama-3.1-405b.json "
      .. "| sed 's#\\\\.\\\\./models#examples/models#; s#\\\"model\\\": \\\"#\\\"model\\\": \\\"$PWD/#') "
      .. "--policy <(echo 'set { small_run_gpus = 64 }') --format json\"; echo $?", os.getenv "PIPEPLAN_SOURCE", os.getenv "PIPEPLAN"))
    local text = handle:read "a"
    handle:close()
    assert.matches("\n0\n$", text)
  end)

  it("and is a directory is answered in one line, exit 2", function()
    local folder = files.directory { ["a.lua"] = site, ["limits.lua"] = "return { gpus = 48 }" }
    for _, arguments in ipairs { "plan DIR", "plan --gpus 64 --accelerator H100 --tokens 1T --model DIR", "simulate DIR.csv", "monitor DIR DIR",
                                 "simulate 1f1b --ranks 4 --microbatches 8 --times DIR", "simulate 1f1b --ranks 4 --microbatches 8 --profile DIR",
                                 "policy diff default default DIR", "policy diff default default --corpus DIR",
                                 "policy mutate DIR --equivalent DIR",
                                 "policy test DIR/nothing_spec.lua" } do
      local result = program.run((arguments:gsub("DIR", folder)))
      assert.same({ 2, "" }, { result.status, result.stdout }, arguments .. ": " .. result.stderr)
      assert.matches("^pipeplan: [^\n]+: [^\n]+\n$", result.stderr)
    end
    local handle = io.popen(string.format("env -u LD_PRELOAD '%s' policy diff default default --corpus - </tmp 2>&1; echo $?", os.getenv "PIPEPLAN"))
    assert.equal("pipeplan: standard input: cannot be read: Is a directory\n2\n", handle:read "a")
    handle:close()
  end)
end)
