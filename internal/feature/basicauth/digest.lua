-- Digest authentication (RFC 7616) with MD5 and qop=auth.
--
-- A nonce is "TIME RANDOM MAC" in hexadecimal digits: its origin and its age can
-- be checked without any state. Shared memory has the counts that were used with
-- it. When that is full, the oldest are dropped: a copy of such a request is
-- accepted again until its nonce expires.
local crypt = require "headgate.feature.basic_auth.crypt"
local mac = require "headgate.feature.basic_auth.mac"
local request_id = require "headgate.request_id"

local _M = {}

local used = ngx.shared.hg_nonces

-- Seconds for which a nonce is valid. After them, a client gets a new one without
-- asking its user.
local LIFE = 300

local STAMP_DIGITS = 8
local RANDOM_DIGITS = 16
local MAC_DIGITS = 32


-- seal returns the MAC of a nonce: only this instance can make it. area: what the
-- nonce is valid for.
local function seal(head, area)
    local hex = string.gsub(string.sub(mac.of(head .. area), 1, MAC_DIGITS / 2), ".", function(c)
        return string.format("%02x", c:byte())
    end)
    return hex
end


-- new_nonce(area) -> a nonce, nil if OpenSSL gives no random bytes.
function _M.new_nonce(area)
    local id = request_id.next()
    if not id then
        return nil
    end
    local head = string.format("%08x", ngx.time()) .. string.sub(id, 1, RANDOM_DIGITS)
    return head .. seal(head, area)
end


-- is_fresh reports whether this instance made the nonce, it has not expired, and it
-- was not used with that count before.
local function is_fresh(nonce, count, area)
    local HEAD = STAMP_DIGITS + RANDOM_DIGITS
    if #nonce ~= HEAD + MAC_DIGITS then
        return false
    end
    local head = string.sub(nonce, 1, HEAD)
    if not crypt.equal(seal(head, area), string.sub(nonce, HEAD + 1)) then
        return false
    end
    local age = ngx.time() - tonumber(string.sub(head, 1, STAMP_DIGITS), 16)
    if age < 0 or age > LIFE then
        return false
    end
    return used:add(string.sub(head, STAMP_DIGITS + 1) .. string.lower(count), true, LIFE + 1) == true
end


-- quoted(text, at) -> the value of the quoted string there, the position behind
-- it, nil if there is none
local function quoted(text, at)
    local from = at + 1
    while true do
        local stop = string.find(text, '["\\]', from)
        if not stop then
            return nil
        end
        if string.sub(text, stop, stop) == '"' then
            return (string.gsub(string.sub(text, at + 1, stop - 1), "\\(.)", "%1")), stop + 1
        end
        from = stop + 2
    end
end


-- parse(header) -> the fields of an Authorization header by lower-case name,
-- nil if it is not a valid header of Digest. No field may be there twice.
function _M.parse(header)
    local at = string.match(header, "^[Dd][Ii][Gg][Ee][Ss][Tt] +()")
    if not at then
        return nil
    end
    local fields = {}
    while true do
        local name, behind = string.match(header, "^([%w%-%*]+)[ \t]*=[ \t]*()", at)
        if not name then
            return nil
        end
        name = string.lower(name)
        local value
        if string.sub(header, behind, behind) == '"' then
            value, at = quoted(header, behind)
        else
            value, at = string.match(header, '^([^%s,"]+)()', behind)
        end
        if not value or fields[name] then
            return nil
        end
        fields[name] = value
        behind = string.match(header, "^[ \t]*,[ \t]*()", at)
        if not behind then
            return string.find(header, "^[ \t]*$", at) and fields or nil
        end
        at = behind
    end
end


-- is_whole reports whether the fields are a complete response to the challenge.
local function is_whole(fields, realm, uri)
    return fields.username and fields.realm == realm and fields.uri == uri
        and fields.nonce and fields.cnonce and fields.qop == "auth"
        and (not fields.algorithm or string.lower(fields.algorithm) == "md5")
        and fields.nc and string.find(fields.nc, "^%x%x%x%x%x%x%x%x$")
        and fields.response and #fields.response == 32
end


-- check(fields, find, method, uri, realm, area) -> whether the request passes,
-- whether it does not only because the nonce has expired or was used
--   find: a function that returns the hash of a user, nil if there is none
function _M.check(fields, find, method, uri, realm, area)
    if not is_whole(fields, realm, uri) then
        return false, false
    end
    local hash = find(fields.username)
    if not hash then
        return false, false
    end
    local want = ngx.md5(hash .. ":" .. fields.nonce .. ":" .. fields.nc .. ":" .. fields.cnonce ..
        ":auth:" .. ngx.md5(method .. ":" .. uri))
    if not crypt.equal(want, string.lower(fields.response)) then
        return false, false
    end
    if not is_fresh(fields.nonce, fields.nc, area) then
        return false, true
    end
    return true
end


return _M
