-- Responses that are replaced: the location @error_page, where NGINX sends requests
-- whose response has a status that the profile catches, the fallback backend, and pages of
-- the host.
local access_log = require "headgate.access_log"
local backend_headers = require "headgate.backend_headers"
local call = require "headgate.call"
local client = require "headgate.client"
local fallbacks = require "headgate.fallback"
local features = require "headgate.features"
local replaced = require "headgate.replaced"
local requests = require "headgate.request"
local settings = require "headgate.settings"
local targets = require "headgate.target"

local _M = {}

-- Without a collector there is none.
local tracing = settings.tracing and require "headgate.tracing"

local ngx = ngx
local ngx_exec = ngx.exec
local ngx_exit = ngx.exit
local ngx_req = ngx.req
local ngx_var = ngx.var
local string_match = string.match
local string_sub = string.sub
local tonumber = tonumber

local OK = 200
local TOO_LARGE = 413
local REFUSALS = { [401] = true, [403] = true }


function _M.run()
    local status = ngx.status
    local request = requests.current()
    if not request then
        return ngx_exit(status)
    end
    return requests.finish(request, status)
end


-- Whether NGINX has all of the request's body. What went to a backend without being
-- kept can't be sent again.
local function has_body()
    local data = ngx_req.get_body_data()
    return data and #data == tonumber(ngx_var.content_length) or ngx_req.get_body_file() ~= nil
end


-- ask reports whether the request can go to a backend (a key or nil). Without a try, it may
-- have been denied, and must not reach the denied backend itself.
local function ask(request, key)
    if not key or not request.tried and string_sub(request.route.backend or "", 1, #key) == key then
        return false
    end
    return call.prepare(request, "error_page", { backend = key }) ~= nil
end


-- hide_credentials removes what the client, or an auth service, wrote for the route's own
-- backend alone. Cookies may say what page the client wants, unless they were refused.
local function hide_credentials(request, refused)
    ngx_req.clear_header("Authorization")
    ngx_req.clear_header("Proxy-Authorization")
    if refused then
        ngx_req.clear_header("Cookie")
        local phase = request.route.phases.hide_client
        if phase then
            features.run(phase, request)
        end
    end
end


-- fall_back(request, default) has the fallback backend answer, or if the route has none with
-- an endpoint, the default one (a key, nil for none). Returns if that has none either. To be
-- called in the phase error_page.
function _M.fall_back(request, default)
    local route = request.route
    local fallback = route.fallback
    local label = fallback and ask(request, fallback.backend) and fallback.label
        or ask(request, default) and "upstream-default-backend"
    if not label then
        return
    end
    -- What was refused, here or by the backend, goes on without its body.
    local refused = not request.tried or REFUSALS[request.failed]
    local location = not refused and has_body() and "@fallback" or "@fallback_bare"
    if not request.tried then
        ngx_req.discard_body()
    end
    backend_headers.restore(request)
    requests.drop_backend_headers()
    hide_credentials(request, refused)
    if tracing then
        tracing.resume()
    end
    fallbacks.describe(route, request.failed)
    if request.failed == TOO_LARGE then
        -- As in ingress-nginx, which knows no more of a request with a long body.
        fallbacks.clear_origin()
    end
    ngx_req.set_header("X-Original-URI", requests.path_and_query())
    requests.set_path("/")
    requests.set_host(request.host_name)
    requests.set_backend_host(ngx_var.hg_host)
    access_log.set_backend(label)
    requests.keep_once(request)
    -- Else the response would keep the status that it replaces.
    ngx.status = OK
    return ngx_exec(location)
end


-- show(request, target, status) has a path of the host answer: this NGINX asks itself for it, as the client
-- would, with GET or HEAD and without a body. So all that guards the path guards the page. target: the path,
-- with its query, as NGINX's error_page has it. status: that of the response, replaced.OWN for that of the
-- page. To be called in the phase error_page.
function _M.show(request, target, status)
    local secure = client.scheme() == "https"
    call.prepare(request, "error_page", { page = true, secure = secure })
    if not request.tried then
        ngx_req.discard_body()
    end
    backend_headers.restore(request)
    if request.password then
        ngx_req.set_header("Authorization", request.password)
    end
    if ngx_req.get_method() ~= "HEAD" then
        ngx_req.set_method(ngx.HTTP_GET)
    end
    local path, query = string_match(target, "^([^?]*)%??(.*)$")
    requests.set_path(path)
    ngx_req.set_uri_args(targets.query(query))
    requests.set_backend_host(requests.authority(request))
    requests.set_page(status)
    request.page_status = status
    requests.keep_once(request)
    ngx.status = OK
    return ngx_exec(secure and "@page_tls" or "@page")
end


-- The header filter of such a response. As in NGINX, another error than that of the page's backend shows.
function _M.filter()
    local request = requests.current()
    local status = request and request.page_status or replaced.OWN
    if not replaced.take() and status ~= replaced.OWN then
        ngx.status = status
    end
end


return _M
