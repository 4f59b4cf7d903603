-- Reads what a server has published, and its clock: ObstaclesRole.observeServers.
-- A key of another type counts as missing: it must not hide the other servers.
--
-- KEYS
--   1 server
--   2 workers
--   3 profile
-- ARGV
-- Returns
--   nothing without a server; else info, its profile ('' without one), milliseconds since the epoch when `server` expires, by
--   the clock of Redis, and the WorkerInfo of each running task

local try = redis.pcall
local info, profile, workers = try('GET', KEYS[1]), try('GET', KEYS[3]), try('HVALS', KEYS[2])
if type(info) ~= 'string' then return {} end
if type(profile) ~= 'string' then profile = '' end
if workers.err then workers = {} end
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
return { info, profile, string.format('%.0f', now + redis.call('PTTL', KEYS[1])), workers }
