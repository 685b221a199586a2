-- Checks a password against a hash.
--
-- A slow hash takes up to a second by design, and would block all requests of the
-- worker. So threads compute it while the request waits (single-flight: requests
-- with the same password and hash share one check), and successful checks are
-- cached for a while. The key of a check is made of password and hash, and not of
-- the user: a changed hash is checked again.
local cache = require "headgate.cache"
local crypt = require "headgate.feature.basic_auth.crypt"
local log = require "headgate.log"
local mac = require "headgate.feature.basic_auth.mac"
local semaphore = require "ngx.semaphore"

local _M = {}

local equal = crypt.equal

-- The threads, as nginx.conf names them, and how many there are. A check waits
-- for one here: the Lua module has few Luas to give to threads, and takes one
-- for each check that waits in the threads' own queue.
local THREADS = "passwords"
local CRYPT = "headgate.feature.basic_auth.crypt"
local MAX_THREADS = 2

-- Seconds for which a correct password is cached, and how many are.
local CACHE_SECONDS = 60
local MAX_REMEMBERED = 4096

-- The number of checks that a worker runs at a time: in all, of one namespace, and
-- of one list of users, so that a client that tries passwords on one host leaves
-- room for others. And the seconds that a request waits for its turn, and those
-- that it waits for another request's check, which may itself wait that long.
local MAX_RUNNING = 192
local MAX_OF_NAMESPACE = 64
local MAX_OF_USERS = 32
local TIMEOUT = 30
local WAITER_TIMEOUT = TIMEOUT + 5

-- libcrypt takes no longer passwords. The rounds of $5$ and $6$ hash the password
-- too, so that a long one would cost many times what the rounds are bounded by.
local MAX_BYTES = 512
local MAX_BYTES_IN_ROUNDS = 128

local BRACE = 123
local SHA1_BYTES = 20

local good = cache.new(MAX_REMEMBERED)

-- The checks under way: by what they find out, their number, and that by
-- namespace and by list of users.
local inflight = {}
local running = 0
local of_namespace = {}
local of_users = {}

-- idle counts the idle threads. The first check makes it, since the master has no
-- semaphores. turns are, by namespace, the requests that may wait for a thread: as
-- many as there are threads, so that no namespace waits for a long queue of another
-- one.
local idle
local turns = {}


-- by_sum checks hashes that are cheap to compute.
local function by_sum(password, hash)
    local close = string.find(hash, "}", 1, true)
    local kind, rest = string.sub(hash, 1, close), string.sub(hash, close + 1)
    if kind == "{PLAIN}" then
        return equal(ngx.sha1_bin(password), ngx.sha1_bin(rest))
    end
    local decoded = ngx.decode_base64(rest)
    if not decoded then
        return false
    end
    if kind == "{SHA}" then
        return equal(ngx.sha1_bin(password), decoded)
    end
    if kind == "{SSHA}" and #decoded >= SHA1_BYTES then
        local salt = string.sub(decoded, SHA1_BYTES + 1)
        return equal(ngx.sha1_bin(password .. salt), string.sub(decoded, 1, SHA1_BYTES))
    end
    return false
end


-- run_in_thread checks in a thread, when there is one idle and it is the namespace's turn.
-- -> whether they match | nil, err
local function run_in_thread(password, hash, namespace)
    idle = idle or semaphore.new(MAX_THREADS)
    local turn = turns[namespace] or semaphore.new(MAX_THREADS)
    turns[namespace] = turn
    local latest = ngx.now() + TIMEOUT
    if not turn:wait(TIMEOUT) then
        return nil, "no thread was free in time"
    end
    if not idle:wait(math.max(latest - ngx.now(), 0)) then
        turn:post(1)
        return nil, "no thread was free in time"
    end
    local ok, matches, err = ngx.run_worker_thread(THREADS, CRYPT, "matches", password, hash)
    idle:post(1)
    turn:post(1)
    if not ok then
        return nil, matches
    end
    return matches, err
end


local function add(numbers, name, change)
    local number = (numbers[name] or 0) + change
    numbers[name] = number > 0 and number or nil
end


-- run_for_all runs a check, and wakes the requests that wait for its result.
local function run_for_all(check, key, password, hash, users, namespace)
    inflight[key] = check
    running = running + 1
    add(of_namespace, namespace, 1)
    add(of_users, users, 1)
    local matches, err = run_in_thread(password, hash, namespace)
    running = running - 1
    add(of_namespace, namespace, -1)
    if not of_namespace[namespace] then
        turns[namespace] = nil
    end
    add(of_users, users, -1)
    inflight[key] = nil
    check.matches, check.err = matches, err
    if matches then
        good:put(key, { ends = ngx.now() + CACHE_SECONDS }, 1, "")
    end
    if check.waiting > 0 then
        check.done:post(check.waiting)
    end
    return matches, err
end


-- wait_for waits for another request's check.
local function wait_for(check)
    check.waiting = check.waiting + 1
    if not check.done:wait(WAITER_TIMEOUT) then
        check.waiting = check.waiting - 1
        return nil, "a check takes too long"
    end
    return check.matches, check.err
end


-- by_thread checks what takes its time: once for all requests that ask the
-- same at the same time.
local function by_thread(password, hash, users, namespace)
    local most = string.find(hash, "^%$[56]%$") and MAX_BYTES_IN_ROUNDS or MAX_BYTES
    if #password > most then
        return false
    end
    local key = mac.of(#hash .. ":" .. hash .. password)
    local entry = good:get(key)
    if entry and entry.ends > ngx.now() then
        return true
    end
    local check = inflight[key]
    if check then
        return wait_for(check)
    end
    if running >= MAX_RUNNING or (of_namespace[namespace] or 0) >= MAX_OF_NAMESPACE
        or (of_users[users] or 0) >= MAX_OF_USERS then
        return nil, "too many checks are under way"
    end
    return run_for_all({ done = semaphore.new(), waiting = 0 }, key, password, hash, users, namespace)
end


-- matches(password, hash, users, namespace) -> whether the password is that of
-- the hash, nil if that can't be found out now. It may yield.
--   hash: one that internal/feature/basicauth let pass
--   users, namespace: names of the list that it is in, and of who guards with it:
--     neither may have all threads
function _M.matches(password, hash, users, namespace)
    -- libcrypt would take no notice of what comes behind it.
    if string.find(password, "\0", 1, true) then
        return false
    end
    if string.byte(hash) == BRACE then
        return by_sum(password, hash)
    end
    local matches, err = by_thread(password, hash, users, namespace)
    if matches == nil then
        log.err("check a password: ", tostring(err))
    end
    return matches
end


return _M
