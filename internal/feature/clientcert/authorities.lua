-- The authorities of client certificates: certificates and revocation lists of a Secret,
-- parsed once in a worker, and what the TLS library does with them.
local base = require "resty.core.base"
local budget = require "headgate.budget"
local cache = require "headgate.cache"
local ffi = require "ffi"
local ssl = require "ngx.ssl"
local units = require "headgate.units"

local _M = {}

local C = ffi.C
local get_request = base.get_request
local string_find = string.find
local tonumber = tonumber

ffi.cdef [[
void *ngx_http_lua_ffi_get_req_ssl_pointer(void *r);
void ERR_clear_error(void);
void *BIO_new_mem_buf(const void *buf, int len);
int BIO_free(void *bio);
void *PEM_read_bio_X509(void *bio, void **x, void *callback, void *user);
void X509_free(void *x);
void *X509_get_subject_name(const void *x);
void *X509_NAME_dup(const void *name);
void X509_NAME_free(void *name);
void *PEM_read_bio_X509_CRL(void *bio, void **x, void *callback, void *user);
void X509_CRL_free(void *crl);
void *X509_STORE_new(void);
void X509_STORE_free(void *store);
int X509_STORE_add_cert(void *store, void *x);
int X509_STORE_add_crl(void *store, void *crl);
int X509_STORE_set_flags(void *store, unsigned long flags);
void *OPENSSL_sk_new_null(void);
int OPENSSL_sk_push(void *list, const void *one);
void OPENSSL_sk_pop_free(void *list, void (*free)(void *));
long SSL_ctrl(void *ssl, int command, long number, void *pointer);
void *SSL_dup_CA_list(const void *list);
void SSL_set_client_CA_list(void *ssl, void *list);
void *SSL_get0_peer_certificate(const void *ssl);
void *SSL_get_peer_cert_chain(const void *ssl);
long SSL_get_verify_result(const void *ssl);
int SSL_get_security_level(const void *ssl);
void *SSL_get_verify_callback(const void *ssl);
void *X509_STORE_CTX_new(void);
void X509_STORE_CTX_free(void *context);
int X509_STORE_CTX_init(void *context, void *store, void *x, void *chain);
int X509_STORE_CTX_set_default(void *context, const char *purpose);
void X509_STORE_CTX_set_verify_cb(void *context, void *callback);
void *X509_STORE_CTX_get0_param(const void *context);
void X509_VERIFY_PARAM_set_depth(void *param, int depth);
void X509_VERIFY_PARAM_set_auth_level(void *param, int level);
int X509_verify_cert(void *context);
int X509_STORE_CTX_get_error(const void *context);
const char *X509_verify_cert_error_string(long code);
]]

local SET_VERIFY_STORE, COUNT_REFERENCE = 106, 1 -- SSL_CTRL_SET_VERIFY_CERT_STORE
-- X509_V_FLAG_CRL_CHECK and X509_V_FLAG_CRL_CHECK_ALL, as NGINX has it.
local CHECK_REVOCATION = 0x4 + 0x8
local UNSPECIFIED = 1 -- X509_V_ERR_UNSPECIFIED

-- In packed bytes; parsed they take about five times as much.
local parsed = cache.new(4 * 1024 * 1024)
-- The entries of parsed, and those that it has dropped since the last sweep.
local held, held_count = {}, 0

-- The function that lets a verification go on behind an error, as handshakes do: what counts
-- is the last error. nil until a handshake has had it.
local go_on

-- In seconds: what parsing may take without being charged to the Secret's namespace. It is
-- more than a few authorities take.
local FREE = 0.0005
-- In bytes: what is parsed even if the namespace's time is up.
local SMALL = 16 * 1024


local function free_names(list)
    C.OPENSSL_sk_pop_free(list, C.X509_NAME_free)
end


-- blocks(pem, kind) -> the number of blocks of a type.
local function blocks(pem, kind)
    local begin = "-----BEGIN " .. kind .. "-----"
    local count, _, at = 0, string_find(pem, begin, 1, true)
    while at do
        count = count + 1
        _, at = string_find(pem, begin, at + 1, true)
    end
    return count
end


-- each calls add for each block of a type, which read finds in PEM. -> their number
local function each(pem, kind, read, free, add)
    local bio = C.BIO_new_mem_buf(pem, #pem)
    if bio == nil then
        error("no memory")
    end
    local count, ok = 0, true
    while ok do
        local one = read(bio, nil, nil, nil)
        if one == nil then
            break
        end
        count, ok = count + 1, add(one)
        free(one)
    end
    C.BIO_free(bio)
    -- Else NGINX would take what is left there for an error of the next connection.
    C.ERR_clear_error()
    -- It stops at the first that it can't read, which the controller could. Without a
    -- revocation list, what is revoked would pass.
    if not ok or count ~= blocks(pem, kind) then
        local bad = ok and count + 1 or count
        error("the TLS library does not take the authorities: " .. kind .. " " .. bad .. " is not valid")
    end
    return count
end


local function parse(pem)
    local store = ffi.gc(C.X509_STORE_new(), C.X509_STORE_free)
    local names = ffi.gc(C.OPENSSL_sk_new_null(), free_names)
    local count = each(pem, "CERTIFICATE", C.PEM_read_bio_X509, C.X509_free, function(certificate)
        local name = C.X509_NAME_dup(C.X509_get_subject_name(certificate))
        return C.X509_STORE_add_cert(store, certificate) == 1 and name ~= nil and C.OPENSSL_sk_push(names, name) > 0
    end)
    if count == 0 then
        error("no authority can be read")
    end
    local lists = each(pem, "X509 CRL", C.PEM_read_bio_X509_CRL, C.X509_CRL_free, function(list)
        return C.X509_STORE_add_crl(store, list) == 1
    end)
    if lists > 0 then
        C.X509_STORE_set_flags(store, CHECK_REVOCATION)
    end
    return { store = store, names = names }
end


-- sweep frees what parsed has dropped: Lua's garbage collector does not see how much memory
-- that is. Handshakes hold what they use themselves.
local function sweep()
    for name, entry in pairs(held) do
        if parsed.entries[name] ~= entry then
            C.X509_STORE_free(ffi.gc(entry.store, nil))
            free_names(ffi.gc(entry.names, nil))
            held[name] = nil
            held_count = held_count - 1
        end
    end
end


local function add(policy, pem)
    local owner = policy.owner
    if #pem > SMALL and budget.refuses_decoding(owner) then
        error("the authorities of namespace " .. owner .. " take too long")
    end
    local began = budget.clock()
    local entry = parse(pem)
    budget.charge_decoding(owner, budget.clock() - began - FREE)
    parsed:put(policy.authorities, entry, #pem, owner)
    held[policy.authorities] = entry
    held_count = held_count + 1
    local _, count = parsed:usage()
    if count < held_count then
        sweep()
    end
    return entry
end


local function find(policy, revision)
    local entry = parsed:get(policy.authorities)
    if not entry then
        local pem = units.content(policy.authorities, revision)
        if not pem then
            error("the authorities are not in the shared memory")
        end
        entry = add(policy, pem)
    end
    return entry
end


-- ask has the handshake ask for a certificate. An error ends the handshake.
--   policy: { authorities, depth, owner }
function _M.ask(policy, connection)
    local entry = find(policy, connection.revision)
    -- This sets a function that lets the handshake go on with any result.
    local ok, err = ssl.verify_client(nil, policy.depth)
    if not ok then
        error(err)
    end
    go_on = go_on or C.SSL_get_verify_callback(connection.ssl)
    if C.SSL_ctrl(connection.ssl, SET_VERIFY_STORE, COUNT_REFERENCE, entry.store) ~= 1 then
        error("the authorities can't be set")
    end
    local names = C.SSL_dup_CA_list(entry.names)
    if names == nil then
        error("no memory")
    end
    C.SSL_set_client_CA_list(connection.ssl, names)
end


-- result() -> what the handshake found: 0, or the code of an error; nil if the client
-- showed no certificate.
function _M.result()
    local connection = C.ngx_http_lua_ffi_get_req_ssl_pointer(get_request())
    if connection == nil or C.SSL_get0_peer_certificate(connection) == nil then
        return nil
    end
    return tonumber(C.SSL_get_verify_result(connection))
end


-- verify(policy, revision) -> the same as result, by another policy than the
-- handshake's.
function _M.verify(policy, revision)
    local connection = C.ngx_http_lua_ffi_get_req_ssl_pointer(get_request())
    local certificate = connection ~= nil and C.SSL_get0_peer_certificate(connection) or nil
    if certificate == nil then
        return nil
    end
    local entry = find(policy, revision)
    local context = C.X509_STORE_CTX_new()
    if context == nil then
        error("no memory")
    end
    local code = UNSPECIFIED
    if C.X509_STORE_CTX_init(context, entry.store, certificate, C.SSL_get_peer_cert_chain(connection)) == 1
        and C.X509_STORE_CTX_set_default(context, "ssl_client") == 1 then
        local settings = C.X509_STORE_CTX_get0_param(context)
        C.X509_VERIFY_PARAM_set_depth(settings, policy.depth)
        C.X509_VERIFY_PARAM_set_auth_level(settings, C.SSL_get_security_level(connection))
        if go_on then
            C.X509_STORE_CTX_set_verify_cb(context, go_on)
        end
        local ok = C.X509_verify_cert(context) == 1
        local err = C.X509_STORE_CTX_get_error(context)
        if ok or err ~= 0 and go_on then
            code = err
        end
    end
    C.X509_STORE_CTX_free(context)
    C.ERR_clear_error()
    return code
end


-- The text of a code.
function _M.text(code)
    return ffi.string(C.X509_verify_cert_error_string(code))
end


return _M
