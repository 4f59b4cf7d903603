-- One bounded pass over a place: LinksRole.keep. Waits and timers that are due, tasks that ended without a notice, old parcels.
--
-- KEYS
--   1 links
--   2 outbox
--   3 timers
--   4 waitingTasks
--   5 pending
--   6 scheduled
--   7 archived
--   8 completed
--   9 linksProgress
--   10 runs
--   11 batches
-- ARGV
--   1 taskPrefix
--   2 now: seconds
--   3 nowNanos
--   4 age: seconds; only parcels that were stored so long ago
--   5 limit: of each kind of thing
--   6 bytes: roughly how much the old parcels may take
-- Returns
--   how many links and timers it settled; '1' when there is nothing to keep, '2' when that has been so for a while; the parcels it has
--   caused and the old ones, both packed as in deliver.lua; how many of the keys that people look for there are; and what was
--   damaged, else ''

-- Clocks of servers differ: a task may be found ended that much before or after.
local MARGIN, TECHNICAL = 60, 604801
-- How long a place has to be empty until it may be taken off the list: registrars list it again that often, and half as much.
local EMPTY_SECONDS = 120
local PROGRESS_SECONDS = 86400
-- What cannot be done, as it is damaged, is tried again so often.
local FAILED_SECONDS = 600
-- A parcel of a clock that is further ahead may be old; and one that is postponed for longer, by a clock that was wrong, is due.
local AHEAD_SECONDS, POSTPONED_SECONDS = 10, 60

local call = redis.call
L.open(ARGV[1], ARGV[2], ARGV[3])
local runs, batches = call('ZCARD', KEYS[10]), call('ZCARD', KEYS[11])
local now, limit, progress = L.seconds, tonumber(ARGV[5]), KEYS[9]
local links_cursor, outbox_cursor, seen, empty_since = unpack(call('HMGET', progress, 'links', 'outbox', 'seen', 'empty'))
local settled = 0

-- 1. Waits and timers.

-- Each run and each batch has a timer. Those that were lost are due now: that finds out what has become of the others.
local function arm_again(kind, key)
  local page = call('ZSCAN', key, call('HGET', progress, kind) or '0', 'COUNT', limit)
  for i = 1, #page[2], 2 do
    call('ZADD', L.timers, 'NX', ARGV[2], kind .. ' ' .. page[2][i])
  end
  call('HSET', progress, kind, page[1])
end

if call('ZCARD', L.timers) < runs + batches then
  arm_again('run', KEYS[10])
  arm_again('batch', KEYS[11])
end
local due = call('ZRANGE', L.waiting, '-inf', ARGV[2], 'BYSCORE', 'LIMIT', 0, limit, 'WITHSCORES')
for i = 1, #due, 2 do
  L.guard(L.time_out, due[i], due[i + 1])
  settled = settled + 1
end
for _, text in ipairs(call('ZRANGE', L.timers, '-inf', ARGV[2], 'BYSCORE', 'LIMIT', 0, limit)) do
  local kind, about = string.match(text, '^(%S+) ?(.*)$')
  if L.due[kind] then
    call('ZREM', L.timers, text)
    local _, failed = L.guard(L.due[kind], about)
    if failed then call('ZADD', L.timers, 'NX', now + FAILED_SECONDS, text) end
    settled = settled + 1
  end
end

-- 2. Tasks that ended without a notice: the latest of them at once, any in the course of some passes
-- (two, unless there are very many links).

if L.has_links or L.has_runs then
  local since = tonumber(seen) or now
  local first, last = since + TECHNICAL - MARGIN, now + TECHNICAL + MARGIN
  for _, id in ipairs(call('ZRANGE', L.archived, '+inf', since - MARGIN, 'BYSCORE', 'REV', 'LIMIT', 0, limit)) do
    settled = settled + (L.guard(L.notice, id) or 0)
  end
  for _, id in ipairs(call('ZRANGE', L.completed, first, last, 'BYSCORE', 'LIMIT', 0, limit)) do
    settled = settled + (L.guard(L.notice, id) or 0)
  end
  local size = math.min(math.max(limit, call('HLEN', L.links) / 2), 6 * limit)
  local page = call('HSCAN', L.links, links_cursor or '0', 'COUNT', math.floor(size))
  links_cursor = page[1]
  for i = 1, #page[2], 2 do
    local id, link = page[2][i], page[2][i + 1]
    if #link > 1 then -- a letter stands for a batch
      if L.values[id] == nil then L.values[id] = link end -- what was changed since is known
      settled = settled + (L.guard(L.notice, id) or 0)
    end
  end
end
L.load_all()
for _, audit in ipairs(L.audits) do
  settled = settled + (L.guard(audit, limit) or 0)
end
L.work()

-- 3. Parcels that nobody has delivered.

local old, age, bytes = {}, tonumber(ARGV[4]), tonumber(ARGV[6])
local page = call('HSCAN', L.outbox, outbox_cursor or '0', 'COUNT', limit)
for i = 1, #page[2], 2 do
  local read, parcel = pcall(cmsgpack.unpack, page[2][i + 1])
  local to, body, data, stored, postponed = unpack(read and type(parcel) == 'table' and parcel or {}, 1, 5)
  if not stored then
    call('HDEL', L.outbox, page[2][i]) -- no parcel
  elseif postponed and postponed > now and postponed <= now + POSTPONED_SECONDS + AHEAD_SECONDS then
    -- This version does not know it.
  elseif (stored <= now - age or stored > now + AHEAD_SECONDS) and not L.is_posted(page[2][i]) and bytes > 0 then
    local n = #old
    old[n + 1], old[n + 2], old[n + 3], old[n + 4] = to, page[2][i], body, data
    bytes = bytes - #body - #data
  end
end

-- 4. What is left.

local left = call('HLEN', L.links) + call('HLEN', L.running) + call('HLEN', L.outbox) + call('ZCARD', L.waiting) + call('ZCARD', L.timers)
local empty = 0
if left > 0 then
  call('HSET', progress, 'links', links_cursor or '0', 'outbox', bytes > 0 and page[1] or outbox_cursor or '0', 'seen', ARGV[2])
  call('HDEL', progress, 'empty')
  call('EXPIRE', progress, PROGRESS_SECONDS)
elseif not empty_since then
  empty = 1
  call('HSET', progress, 'empty', ARGV[2])
  call('EXPIRE', progress, PROGRESS_SECONDS)
else
  empty = 1
  if now - tonumber(empty_since) >= EMPTY_SECONDS then
    empty = 2
    call('DEL', progress)
  end
end
local shown = call('EXISTS', L.waiting, L.pending, L.scheduled, L.archived, KEYS[10], KEYS[11])
return { settled, empty, L.parcels(), #old > 0 and cmsgpack.pack(old) or '', shown, L.damage or '' }
