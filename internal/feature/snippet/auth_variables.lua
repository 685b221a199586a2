-- The variables of auth_request_set: they get values when the auth service has answered,
-- now or before (a cached answer).
local program = require "headgate.program"

local _M = {}

local ngx = ngx
local ngx_resp = ngx.resp
local string_find = string.find
local string_gsub = string.gsub
local string_lower = string.lower
local string_match = string.match
local string_sub = string.sub
local table_concat = table.concat
local type = type

-- Newer versions of NGINX join the values of several headers of one name.
local JOINS = ngx.config.nginx_version >= 1023000


-- header is the value of a header of the answer. name: with underscores.
local function header(answer, name)
    local value = answer.headers[string_gsub(name, "_", "-")]
    if type(value) == "table" then
        return JOINS and table_concat(value, ", ") or value[1]
    end
    return value
end


-- cookie is the value of a cookie that the answer sets.
local function cookie(answer, name)
    local lines = answer.headers["set-cookie"]
    if type(lines) ~= "table" then
        lines = { lines }
    end
    for i = 1, #lines do
        local line = lines[i]
        if string_lower(string_sub(line, 1, #name)) == name and string_find(line, "^%s*=", #name + 1) then
            return string_match(line, "^[^=]*=%s*([^;]*)")
        end
    end
end


-- In auth_request_set, these variables are of the answer of the auth service.
local fill = program.filler({
    upstream_http = function(request, name) return header(request.program.auth_answer, name) end,
    upstream_cookie = function(request, name) return cookie(request.program.auth_answer, name) end,
    upstream_status = function(request) return request.program.auth_answer.status end,
})


-- set gives the variables of the location values. answer: { status, headers }, headers by
-- names in lower case.
function _M.set(request, answer)
    local state = request.program
    local list = state.location and state.location.auth_variables
    if not list or state.auth_answer then
        return
    end
    state.auth_answer = answer
    for i = 1, #list do
        state.variables[list[i].name] = fill(list[i].value, request)
    end
end


-- Sets them by the answer that NGINX just got from the service.
function _M.set_by_response(request)
    return _M.set(request, { status = ngx.status, headers = ngx_resp.get_headers(0) })
end


-- Sets them by a cached answer, if there is one.
function _M.set_by_verdict(request)
    local verdict = request.verdict
    if verdict and verdict.kept then
        return _M.set(request, { status = verdict.status, headers = verdict.kept })
    end
end


return _M
