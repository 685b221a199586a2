-- The table of a request, which its phases share, and the only writer of NGINX's
-- variables, those that features declare included, but for those of the access log.
--
-- The table of a request is its ngx.ctx. A jump into a profile's location
-- empties that, so before it the table is put into a slot whose number a
-- variable carries; the location's log phase frees the slot.
local client = require "headgate.client"
local features = require "headgate.features"
local replaced = require "headgate.replaced"
local request_id = require "headgate.request_id"
local settings = require "headgate.settings"
local targets = require "headgate.target"

local _M = {}

local ngx = ngx
local ngx_exit = ngx.exit
local ngx_get_phase = ngx.get_phase
local ngx_header = ngx.header
local ngx_var = ngx.var
local string_byte = string.byte
local string_find = string.find
local string_gsub = string.gsub
local string_match = string.match
local table_concat = table.concat
local table_new = require "table.new"
local tonumber = tonumber

local SLASH = 47
local NO_CONTENT = 204

-- Misdirected Request and Too Early: clients that get them from Headgate ask once more.
local ASKS_AGAIN = { [421] = true, [425] = true }

local slots = {}
local free = {}
local free_count = 0
local slot_count = 0


-- new() -> the request's table, with
--   host_name   the name that the client asked for, lower case, no port
--   name        the name unit that answers for it
--   path        the normalised path, as rewrite directives have changed it
--   host        the host
--   moved       set where the path was changed so that the request is to be routed again
--   moves       how often it was routed again, nil for never
--   breaks      set where no further rewrite directives of the route apply
--   unanswered  the status of the response if policies let the request pass, where the
--               route's backend is not to be asked
--   revision    what was applied when the request came
--   route       the route that matched
--   shortcut    see shortcut.lua; nil if there is none
--   backend     the backend to ask, if the route has one
--   hides_password  whether the client's password is removed after the call to the
--               auth service, before the request goes to the backend
--   password    the client's Authorization, if it is removed before the backend is asked
--   groups      what the groups of the route's path found, where a template asks
--   tried       the index of the endpoint that was asked; once there are several,
--               a set of them, and tries is the list in order, with false for those
--               that are not endpoints any more
--   max_tries   how many tries it has at most, if not settings.tries
--   session     what the picker of a backend with sessions leaves for its feature: that
--               a session began, or moved
--   passed      set by authenticate where the auth service need not be called
--   address_lists  of a route with lists of addresses: "decided" if they have decided,
--               else "open"
--   keeps       a list of headers of the auth service's response that policies want to read
--               later, in lower case; nil for none
--   refusal     the denial of other auth checks if the auth service decides last:
--               { status, challenge }
--   calls       to other services for this request, by name, see call.lua; nil
--               if there are none
--   ambiguous_path  set if the client's path may mean another one for the backend,
--               with other access: see paths.lua
--   replaced    headers that only the backend gets otherwise than the client sent them:
--               see backend_headers.lua
--   regex_visit  the number of the request for regex.lua
--   status      that of the response with which Headgate ends the request, once it does: for
--               header_filter
--   program     what snippets do to the request: see program.lua
--   failed      the status of the response that the phase error_page may replace
--   page_status  of the page that does so: see error_page.lua
--   filtered    whether what features do to all responses is done
--   globals     what features have for all requests, by feature
--   ends_connection  set if the request's connection ends with it: see ask_to_leave in route.lua
--   connection  on hosts with TLS policies, what ssl_client_hello got and noted for
--               the client's connection; nil if the host of its handshake had none
function _M.new()
    -- Any request has nine or ten fields: with room for these from the start, the table never grows.
    local request = table_new(0, 16)
    ngx.ctx = request
    return request
end


-- The table of this request, nil if it never got one.
function _M.current()
    local request = ngx.ctx
    if request.route then
        return request
    end
    local slot = ngx_var.hg_request
    request = slot and slots[tonumber(slot)]
    if request then
        ngx.ctx = request
    end
    return request
end


-- Keeps the request's table over a jump.
function _M.keep(request)
    local slot
    if free_count > 0 then
        slot = free[free_count]
        free_count = free_count - 1
    else
        slot_count = slot_count + 1
        slot = slot_count
    end
    slots[slot] = request
    ngx_var.hg_request = slot
end


-- Does so unless it is kept already.
function _M.keep_once(request)
    if not slots[tonumber(ngx_var.hg_request)] then
        _M.keep(request)
    end
end


-- Ends what keep began: the log phase of a location. -> the request's table, nil if
-- there is none.
function _M.release()
    if slot_count == free_count then
        return nil
    end
    local slot = tonumber(ngx_var.hg_request)
    local request = slot and slots[slot]
    if request then
        slots[slot] = nil
        free_count = free_count + 1
        free[free_count] = slot
        local backend = request.backend
        if backend and backend.reports then
            backend:report(request)
        end
        local phase = request.route.phases.log
        if phase then
            features.run(phase, request)
        end
    end
    return request
end


-- The number of tables that are kept.
function _M.kept()
    return slot_count - free_count
end


-- Ends a request whose phases failed: the log phase runs, unless release will run it.
function _M.abandon(request)
    if not slots[tonumber(ngx_var.hg_request)] then
        features.run(request.route.phases.log, request)
    end
end


-- The header filter runs here for requests that end in the phases before the
-- jump: NGINX's locations run it for all others. So does the log phase.
local function filter(request)
    if ngx_get_phase() == "access" then
        return
    end
    local phases = request.route.phases
    if settings.sees_responses then
        local list = request.globals and request.globals.responses
        if list then
            features.run(list, request)
        end
        request.filtered = true
    end
    if phases.header_filter then
        features.run(phases.header_filter, request)
    end
    if phases.log then
        _M.abandon(request)
    end
end


-- error_page asks the policies for another response, once for a request. In the access
-- phase, NGINX goes to @error_page first if the profile catches the status.
local function error_page(request, status)
    local phase = request.route.phases.error_page
    if phase and not request.failed and (request.tried or not ASKS_AGAIN[status]) and ngx_get_phase() ~= "access"
        and not replaced.is_page() then
        request.failed = status
        features.run(phase, request)
    end
end


-- Ends a request with a response of Headgate, or with what policies answer instead. The
-- caller returns the result.
function _M.finish(request, status)
    error_page(request, status)
    request.status = status
    replaced.mark()
    filter(request)
    return ngx_exit(status)
end


-- Ends a request with a text. media_type: nil for the usual one.
function _M.answer(request, status, text, media_type)
    ngx.req.discard_body()
    request.status = status
    ngx.status = status
    if media_type then
        ngx_header["Content-Type"] = media_type
    end
    if status ~= NO_CONTENT then
        ngx_header["Content-Length"] = #text
    end
    filter(request)
    if text ~= "" then
        ngx.print(text)
    else
        ngx.send_headers()
    end
    return ngx_exit(status)
end


-- A path with scheme and host before it, unless redirects are to be relative.
-- Any other target is left alone.
function _M.whole(target, relative, host_name)
    if relative or string_byte(target) ~= SLASH then
        return target
    end
    return client.scheme() .. "://" .. host_name .. target
end


-- Ends a request with a redirect.
function _M.redirect(request, target, status)
    request.status = status
    replaced.mark()
    filter(request)
    return ngx.redirect(target, status)
end


-- line removes bytes that would end a header line: NGINX writes variables raw.
local function line(value)
    if string_find(value, "[%z\r\n]") then
        return (string_gsub(value, "[%z\r\n]", ""))
    end
    return value
end


-- The host as the client wrote it, with its port.
function _M.authority(request)
    local http_host = ngx_var.http_host
    return http_host and client.names(http_host, request.host_name) and http_host or request.host_name
end


-- Sets the Host of the request to the backend to the host that was routed, if the
-- client's own header names another one.
function _M.set_host(host_name)
    local http_host = ngx_var.http_host
    if http_host and not client.names(http_host, host_name) then
        ngx_var.hg_host = line(host_name)
    end
end


-- Sets the Host of the request to the backend.
function _M.set_backend_host(host)
    ngx_var.hg_backend_host = line(host)
end


-- Sets the Connection header of the request to the backend, by HTTP/1.
function _M.set_connection(value)
    ngx_var.hg_connection = line(value)
end


-- The path and query as the client sent them. A client may name a host with a
-- query and no path, and HTTP/1 lets a fragment through.
function _M.path_and_query()
    local uri = string_gsub(ngx_var.request_uri, "^%a[%w+.-]*://[^/?#]*", "")
    uri = string_gsub(uri, "#.*$", "")
    if string_byte(uri) ~= SLASH then
        return "/" .. uri
    end
    return uri
end


-- A path as it is written in a URI, with the client's query.
function _M.with_query(path)
    local args = ngx_var.args
    return ngx.escape_uri(path, 0) .. (args and "?" .. args or "")
end


-- The path and query for other services: those of the client, or, if its path is
-- ambiguous, the path by which the request is routed, as the backend gets it.
function _M.target(request)
    if not request.ambiguous_path then
        return _M.path_and_query()
    end
    return _M.with_query(request.path)
end


-- Sets the target that FastCGI backends get, in the locations of their profiles.
function _M.set_target()
    local request = _M.current()
    -- A request without a table has a path that is not ambiguous.
    ngx_var.hg_target = request and _M.target(request) or _M.path_and_query()
end


-- Limits the rate of the response, in bytes a second, behind its first `after` bytes.
function _M.set_rate(rate, after)
    ngx_var.limit_rate = rate
    if after > 0 then
        ngx_var.hg_rate_after = after
    end
end


-- Sets the path of the request to the backend; the query stays. -> the path, which begins
-- with a slash
function _M.set_path(path)
    if string_byte(path) ~= SLASH then
        path = "/" .. path
    end
    ngx.req.set_uri(path, false, true)
    return path
end


-- Notes the status of a page that answers instead of an error, for the request for it.
function _M.set_page(status)
    ngx_var.hg_page = status
end


-- Asks the client to use no HTTP/3 of the host from now on (RFC 7838, section 3).
function _M.end_http3()
    ngx_var.hg_alt_svc = "clear"
end


-- Adds a WWW-Authenticate to the response of @refused, beside that of NGINX.
function _M.set_challenge(challenge)
    ngx_var.hg_challenge = line(challenge)
end


-- Sets variables that a feature declared (Feature.Resources). values: by name.
-- What the declaration does not allow in a value is removed or encoded.
function _M.set_variables(values)
    local declared = settings.variables
    for name, value in pairs(values) do
        local kind = declared[name]
        if not kind then
            error("no feature declares the variable " .. name)
        end
        if kind == "pem" then
            -- Never the name of a file.
            ngx_var[name] = "data:" .. value
        elseif kind == "content" then
            ngx_var[name] = value
        else
            ngx_var[name] = kind == "target" and targets.safe(value) or line(value)
        end
    end
end


-- append_lines adds lines behind that of a header. name: the variable of that header's value, and value the
-- value, which is not empty. list: names and values by turns
function _M.append_lines(name, value, list)
    if not list[1] then
        return
    end
    -- NGINX writes a variable as it is.
    local lines = { value }
    for i = 1, #list, 2 do
        lines[#lines + 1] = line(list[i]) .. ": " .. line(list[i + 1])
    end
    ngx_var[name] = table_concat(lines, "\r\n")
end


-- Adds lines to the header of the request to the backend, by HTTP/1. Their names may be those
-- of lines that are there already: they come behind these. list: names and values by turns.
function _M.add_backend_headers(list)
    -- NGINX sends no line for an empty variable; Host never is.
    local scheme = settings.variables.hg_header_x_scheme and ngx_var.hg_header_x_scheme
    if scheme and scheme ~= "" then
        return _M.append_lines("hg_header_x_scheme", scheme, list)
    end
    return _M.append_lines("hg_backend_host", ngx_var.hg_backend_host, list)
end


-- Takes these lines back, for a fallback backend, whose Host is its own.
function _M.drop_backend_headers()
    local scheme = settings.variables.hg_header_x_scheme and ngx_var.hg_header_x_scheme
    if scheme and string_find(scheme, "\r", 1, true) then
        ngx_var.hg_header_x_scheme = string_match(scheme, "^[^\r]*")
    end
end


-- Names the request, and a trace that begins here without a sample, instead of NGINX's costlier $request_id.
function _M.set_id()
    if not settings.request_ids and not settings.tracing then
        return
    end
    local id = request_id.next()
    if id then
        ngx_var.hg_id = id
    end
end


-- Notes what backends get of the request's trace, instead of one that begins here without a sample.
function _M.set_trace(parent)
    ngx_var.hg_trace = parent
end


return _M
