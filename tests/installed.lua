-- SPDX-License-Identifier: Apache-2.0
-- installed.lua: what `cmake --install` makes of the build under test. The build folder's own manifest, of what its user has installed, is
-- put back; tests that install hold a lock (tests/CMakeLists.txt).

local installed = {}

local build = os.getenv "PIPEPLAN_BUILD"
local manifest = build .. "/install_manifest.txt"

-- Runs a shell command outside the source tree, without what the tests set up → status, text of both streams. The sanitizer's runtime is
-- preloaded for the interpreter; the installer needs none.
local function run(format, ...)
  local command = "(cd / && unset LD_PRELOAD LUA_PATH LUA_CPATH; " .. format .. ") 2>&1; echo \"status $?\""
  local handle = assert(io.popen(string.format(command, ...)))
  local text, status = handle:read("a"):match "^(.*)status (%d+)\n$"
  handle:close()
  return tonumber(status), text
end

-- Installs under a prefix; with_manifest(), if given, is called while the build folder has the manifest of this installation.
function installed.under(prefix, with_manifest)
  os.rename(manifest, manifest .. ".kept")
  local status, text = run("cmake --install '%s' --prefix '%s'", build, prefix)
  local good, problem = true, nil
  if status == 0 and with_manifest then good, problem = pcall(with_manifest) end
  os.remove(manifest)
  os.rename(manifest .. ".kept", manifest)
  assert(status == 0, text)
  if not good then error(problem, 0) end
end

-- Runs the build's target uninstall → status, text.
function installed.uninstall()
  return run("cmake --build '%s' --target uninstall", build)
end

return installed
