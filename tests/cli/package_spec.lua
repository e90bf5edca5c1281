-- SPDX-License-Identifier: Apache-2.0
-- The Debian package of a build: what is in it plans without the source tree.

local build = os.getenv "PIPEPLAN_BUILD"

-- Outside the source tree, without what the tests set up → status, text of both streams.
local function run(format, ...)
  local command = "(cd / && unset LD_PRELOAD LUA_PATH LUA_CPATH PIPEPLAN PIPEPLAN_SOURCE; " .. format .. ") 2>&1; echo \"status $?\""
  local handle = assert(io.popen(string.format(command, ...)))
  local text, status = handle:read("a"):match "^(.*)status (%d+)\n$"
  handle:close()
  return tonumber(status), text
end

describe("the Debian package", function()
  it("plans where nothing but it is unpacked", function()
    for _, tool in ipairs { "cpack", "dpkg-deb", "dpkg-shlibdeps" } do
      if run("command -v %s", tool) ~= 0 then return pending("no " .. tool .. ": the package is not built") end
    end
    local folder = os.tmpname()
    os.remove(folder)
    assert.equal(0, (run("mkdir '%s'", folder)))
    local status, text = run("cpack -G DEB --config '%s/CPackConfig.cmake' -B '%s' && dpkg-deb -x '%s'/pipeplan_*.deb '%s/root'", build, folder, folder,
                             folder)
    assert.equal(0, status, text)
    status, text = run("dpkg-deb -f '%s'/pipeplan_*.deb Package Depends", folder)
    assert.equal(0, status, text)
    assert.matches("Package: pipeplan\n", text)
    assert.matches("Depends: .*liblua5%.4", text)
    status, text = run("'%s/root/usr/bin/pipeplan' plan '%s/root/usr/share/pipeplan/examples/specs/qwen3-235b.json' --format json", folder, folder)
    assert.equal(0, status, text)
    assert.matches('"status": "planned"', text)
    status, text = run("PKG_CONFIG_PATH='%s/root/usr/share/pkgconfig' pkg-config --variable=luadir pipeplan", folder)
    assert.equal(0, status, text)
    status = run("test -f '%s/pipeplan.so'", (text:gsub("\n", "")))
    assert.equal(0, status, text)
    status, text = run("cd '%s/root/usr/share' && ls man/man1/pipeplan-plan.1 bash-completion/completions/pipeplan zsh/vendor-completions/_pipeplan",
                       folder)
    assert.equal(0, status, text)
    run("rm -rf '%s'", folder)
  end)
end)
