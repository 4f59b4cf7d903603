-- Creates the members of a chunk: BatchesRole.add. Their ids follow from their numbers, and their end from bits: see parts.lua.
--
-- KEYS
--   1 links
--   2 timers
--   3 pending
--   4 scheduled
--   5 part
--   6 partMade
--   7… the lock of each unique member
-- ARGV
--   1 taskPrefix
--   2 now: seconds
--   3 nowNanos
--   4 batch
--   5 home
--   6 base: the number of the first
--   7 resent: '1' when an earlier call may have done this
--   8 routes: a letter per member: p pending, s scheduled, w with links; upper case when it is unique
--   9… the message of each; then, member by member, the TTL of its lock (seconds) and its time (seconds); or with links JSON, see L.create
-- Returns
--   empty when the chunk was given up, and nothing was written; else index and status of each that was not created (1 duplicate,
--   2 conflict), and the parcels, packed as in deliver.lua
--
-- Uses shared/spread.lua

local DUPLICATE, CONFLICT = 1, 2
local STATUS = { duplicate = DUPLICATE, conflict = CONFLICT }
local PENDING, LINKED, LOWER_CASE, TO_LOWER_CASE = 112, 119, 97, 32 -- p, w, a; A is 65
local SCAN_SECONDS = 2

local call = redis.call
local links, timers, pending_key, scheduled_key, part, made_key = unpack(KEYS, 1, 6)
local now_nanos, batch, home, base, routes = ARGV[3], ARGV[4], ARGV[5], tonumber(ARGV[6]), ARGV[8]
local id_prefix = batch .. '~'
local key_prefix, count = ARGV[1] .. id_prefix, #routes

call('HLEN', links)
call('ZCARD', timers)
call('LLEN', pending_key)
call('ZCARD', scheduled_key)
if not string.find(routes, '[wW]') then L = nil end
if L then L.open(ARGV[1], ARGV[2], now_nanos) end
if call('HEXISTS', part, 'x:' .. ARGV[6]) == 1 then return {} end

-- Which of them there are already: an earlier call has created the chunk. If this is the first, the numbers are those of others: the
-- home has lost that it has given them away.
local there, any = {}, call('STRLEN', made_key) * 8 > base
if any then
  any = false
  local asked = {}
  for i = 1, count do
    asked[3 * i - 2], asked[3 * i - 1], asked[3 * i] = 'GET', 'u1', base + i - 1
  end
  there = call('BITFIELD_RO', made_key, unpack(asked))
  for i = 1, count do
    any = any or there[i] == 1
  end
end
local refused, n = {}, 0
if any then
  for i = 1, count do
    if there[i] == 0 or ARGV[7] ~= '1' then
      refused[n + 1], refused[n + 2] = i, ARGV[7] == '1' and string.byte(routes, i) < LOWER_CASE and DUPLICATE or CONFLICT
      n = n + 2
    end
  end
  return { refused, '' }
end

local ids, keys = {}, {}
for i = 1, count do
  local number = string.format('%.0f', base + i - 1)
  ids[i], keys[i] = id_prefix .. number, key_prefix .. number
end
local existing = 0
for first = 1, count, 1000 do
  existing = existing + call('EXISTS', unpack(keys, first, math.min(first + 999, count)))
end

-- Everything is checked. From here on the script writes.
local pending, scheduled, lone = {}, {}, {}
local next_key, next_argument = 7, 9 + count
local waiting = 0
if L then L.note_batch(batch, true) end
for i = 1, count do
  local id, key, route, status, lock, ttl, at = ids[i], keys[i], string.byte(routes, i), nil, nil, nil, nil
  local is_linked = route == LINKED or route == LINKED - TO_LOWER_CASE
  if is_linked then
    local task = cjson.decode(ARGV[next_argument])
    next_argument = next_argument + 1
    task.id, task.message = id, ARGV[i + 8]
    status = STATUS[L.create(task)]
  elseif route ~= PENDING then
    if route < LOWER_CASE then
      route = route + TO_LOWER_CASE
      lock, ttl = KEYS[next_key], ARGV[next_argument]
      next_key, next_argument = next_key + 1, next_argument + 1
      if call('EXISTS', lock) == 1 then status = DUPLICATE end
    end
    if route ~= PENDING then
      at = ARGV[next_argument]
      next_argument = next_argument + 1
    end
  end
  if existing > 0 and not is_linked and not status and call('EXISTS', key) == 1 then status = CONFLICT end
  if status then
    refused[n + 1], refused[n + 2] = i, status
    n = n + 2
  else
    if lock then
      call('SET', lock, id, 'NX', 'EX', ttl)
      call('HSET', key, 'unique_key', lock)
    end
    if at then
      call('HSET', key, 'msg', ARGV[i + 8], 'state', 'scheduled')
      scheduled[#scheduled + 1] = at
      scheduled[#scheduled + 1] = id
    elseif not is_linked then
      call('HSET', key, 'msg', ARGV[i + 8], 'state', 'pending', 'pending_since', now_nanos)
      waiting = waiting + 1
      pending[waiting] = id
    end
    lone[#lone + 1] = base + i - 1
  end
end
spread('LPUSH', pending_key, pending)
spread('ZADD', scheduled_key, scheduled)
if #lone == 0 then
  if L and call('EXISTS', part) == 0 then L.note_batch(batch, false) end
  return { refused, '' }
end

-- Who is a member. A chunk that begins with a byte has its bytes to itself: see reserve-members.lua.
if #lone == count and base % 8 == 0 and count >= 8 then
  local rest = count % 8
  local bytes = string.rep('\255', (count - rest) / 8)
  if rest > 0 then bytes = bytes .. string.char(256 - 2 ^ (8 - rest)) end
  call('SETRANGE', made_key, base / 8, bytes)
else
  for i = 1, #lone do
    call('SETBIT', made_key, lone[i], '1')
  end
end
call('HSET', part, 'home', home)
call('HINCRBY', part, 'made', #lone)
call('HSETNX', links, batch, '1')
call('ZADD', timers, tonumber(ARGV[2]) + SCAN_SECONDS, 'part ' .. batch)
if L then L.work() end
return { refused, L and L.parcels() or '' }
