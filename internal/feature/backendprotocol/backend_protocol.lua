-- TLS to backends: the name and the certificate, which NGINX takes from variables. The
-- profile has digests of both, so no other route's connections are shared. And the parameters
-- of FastCGI backends.
local fastcgi = require "headgate.feature.backend_protocol.fastcgi"
local requests = require "headgate.request"
local units = require "headgate.units"

local _M = {}

local UNAVAILABLE = 503

-- What the variables are for a policy. An older worker may have a policy whose content was
-- deleted.
local variables = setmetatable({}, { __mode = "k" })


-- values_of(policy, revision) -> the variables by name, nil if the certificate is gone
local function values_of(policy, revision)
    local values = variables[policy]
    if values then
        return values
    end
    values = { hg_backend_tls_name = policy.name }
    if policy.certificate then
        local certificate = units.content(policy.certificate, revision)
        if not certificate then
            return nil
        end
        values.hg_backend_tls_certificate = certificate
    end
    variables[policy] = values
    return values
end


function _M.applies(policy, phase)
    return phase ~= "error_page" or policy.fastcgi and policy.fastcgi.headers ~= nil
end


function _M.request_headers(policy, request)
    if policy.fastcgi then
        return fastcgi.set(policy.fastcgi, request)
    end
    local values = values_of(policy, request.revision)
    if not values then
        return requests.finish(request, UNAVAILABLE)
    end
    requests.set_variables(values)
end


-- Headers that are parameters of the backend are not for an error backend.
function _M.error_page(policy)
    fastcgi.clear(policy.fastcgi)
end


return _M
