#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs busted specs under lua5.4 against the module in $PIPEPLAN_BUILD; preloads a sanitizer's runtime where the build has one.
LUA_CPATH="$PIPEPLAN_BUILD/?.so;;"
LUA_PATH="tests/?.lua;;"
export LUA_CPATH LUA_PATH
if [ -n "$PIPEPLAN_PRELOAD" ]; then
  LD_PRELOAD=$PIPEPLAN_PRELOAD
  export LD_PRELOAD
fi
exec lua5.4 "$(command -v busted)" --lua=lua5.4 --output=TAP "$@"
