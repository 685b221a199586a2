-- NGINX writes variables and log lines as they are, so control bytes in them
-- would make headers, requests and log lines of their own. One module each
-- writes them, with what is unsafe taken out; everywhere else it is an error.
std = "ngx_lua"

local writers = {
   variables = "lua/headgate/request.lua",
   access_log = "lua/headgate/access_log.lua",
   log = "lua/headgate/log.lua",
}

not_globals = {"ngx.log", "print"}
read_globals = {ngx = {fields = {
   var = {read_only = true, other_fields = true},
   -- Newer than what luacheck knows.
   run_worker_thread = {},
}}}

files[writers.log] = {read_globals = {"ngx.log"}}
files[writers.variables] = {globals = {"ngx.var"}}
files[writers.access_log] = {globals = {"ngx.var"}}
