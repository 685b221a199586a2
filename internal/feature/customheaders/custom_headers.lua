-- Sets headers of a ConfigMap in responses. They replace the headers of the backend.
local _M = {}

local ngx_header = ngx.header
local ngx_var = ngx.var


-- policy: { headers, hsts }; headers is a list of { name, value }.
function _M.header_filter(policy)
    local headers = policy.headers
    if headers then
        for i = 1, #headers do
            ngx_header[headers[i][1]] = headers[i][2]
        end
    end
    -- The variable is there while NGINX itself writes the header.
    if policy.hsts and not ngx_var.hg_hsts then
        ngx_header["Strict-Transport-Security"] = policy.hsts
    end
end


return _M
