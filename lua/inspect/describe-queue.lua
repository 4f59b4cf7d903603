-- Counts the tasks of a queue by state and estimates their size: InspectionRole.describeQueue.
--
-- KEYS
--   1 pending
--   2 active
--   3 scheduled
--   4 retry
--   5 archived
--   6 completed
--   7 groups
--   8 paused
--   9 processedOn
--   10 failedOn
--   11 processed
--   12 failed
--   13 fairRing
--   14 fairHeld
--   15 fairTotal
--   16 held
-- ARGV
--   1 taskPrefix
--   2 groupPrefix
--   3 sample: how many tasks of each state are measured, and checked for the longest wait
--   4 counted: how many groups are counted one by one; with more, they stand for all
--   5 waitingGroup: the group of the tasks that wait for others
--   6 fairGroup: how the groups begin that are the lines of a fair queue
-- Returns
--   the numbers of tasks pending, active, scheduled, retry, archived, completed and aggregating and of groups, whether it is paused,
--   the bytes, and as text the counters (processedOn, failedOn, processed, failed) and the oldest pending_since of the sample, the number of tasks
--   that wait for others, that of tasks in lines, which are pending, too, that of held tasks, which are in retry, too, since when the oldest
--   of them is held (nanoseconds; '' when unknown), and the numbers of keys that have their turns, and that are held
--
-- Uses shared/hold.lua

local call, try = redis.call, redis.pcall
local sample, counted = tonumber(ARGV[3]), tonumber(ARGV[4])
-- How many entries of `held` that are no longer held may be before the oldest one that is.
local MOST_LEFT = 1000

local function weigh(key)
  local bytes = try('MEMORY', 'USAGE', key)
  return type(bytes) == 'number' and bytes or nil
end

-- The mean size of those that exist, times the number.
local function estimate(ids, number)
  local sum, there = 0, 0
  for i = 1, #ids do
    local bytes = weigh(ARGV[1] .. ids[i])
    if bytes then
      sum, there = sum + bytes, there + 1
    end
  end
  return there > 0 and sum / there * number or 0
end

local numbers, bytes, oldest = {}, 0, nil

local function wait_of(id)
  local since = try('HGET', ARGV[1] .. id, 'pending_since')
  if type(since) == 'string' and string.match(since, '^%d+$') then
    if not oldest or tonumber(since) < tonumber(oldest) then oldest = since end
  end
end

for i = 1, 6 do
  local line = i <= 2
  local number = call(line and 'LLEN' or 'ZCARD', KEYS[i])
  numbers[i] = number
  if number > 0 then
    local ids = line and call('LRANGE', KEYS[i], -sample, -1) or call('ZRANGE', KEYS[i], 0, sample - 1)
    bytes = bytes + estimate(ids, number) + (weigh(KEYS[i]) or 0)
    if i == 1 then
      for n = 1, #ids do
        wait_of(ids[n])
      end
    end
  end
end

local groups, waiting, weighed = call('SCARD', KEYS[7]), 0, {}
local all = groups <= counted
local names = all and call('SMEMBERS', KEYS[7]) or call('SRANDMEMBER', KEYS[7], counted)
for i = 1, #names do
  local key = ARGV[2] .. names[i]
  local size = try('ZCARD', key)
  if type(size) == 'number' then
    waiting = waiting + size
    if size > 0 and #weighed < 5 * sample then
      local ids = call('ZRANGE', key, 0, sample - 1)
      for n = 1, #ids do
        weighed[#weighed + 1] = ids[n]
      end
    end
  end
end
if not all then waiting = math.floor(waiting / #names * groups) end
numbers[7], numbers[8] = waiting, groups
bytes = bytes + estimate(weighed, waiting)
local waits = ARGV[2] .. ARGV[5]
numbers[16] = call('ZCARD', waits)
if numbers[16] > 0 then bytes = bytes + estimate(call('ZRANGE', waits, 0, sample - 1), numbers[16]) end

-- The first of some lines: of those whose turn is next, and of those that are held back.
local in_lines, first = tonumber(call('GET', KEYS[15]) or 0) or 0, {}
for i = 13, 14 do
  numbers[i + 7] = call('ZCARD', KEYS[i])
  local keys = numbers[i + 7] > 0 and call('ZRANGE', KEYS[i], 0, sample - 1) or {}
  for n = 1, #keys do
    local id = try('ZRANGE', ARGV[2] .. ARGV[6] .. keys[n], 0, 0)[1]
    if id then
      first[#first + 1] = id
      wait_of(id)
    end
  end
end
if #first == 0 then in_lines = 0 end
numbers[17] = in_lines
bytes = bytes + estimate(first, in_lines)

-- Go's tools leave those that they move, and Go's forwarder those that nobody has woken in time. All held ones are in retry.
numbers[18], numbers[19] = math.min(call('ZCARD', KEYS[16]), numbers[4]), ''
local first_held = numbers[18] > 0 and call('ZRANGE', KEYS[16], 0, MOST_LEFT) or {}
for n = 1, #first_held do
  local since = hold(ARGV[1] .. first_held[n], try('ZSCORE', KEYS[4], first_held[n]))
  if since then
    numbers[19] = since
    break
  end
end

numbers[9] = call('EXISTS', KEYS[8])
numbers[10] = math.floor(bytes)
for i = 9, 12 do
  numbers[i + 2] = call('GET', KEYS[i]) or '0'
end
numbers[15] = oldest or ''
return numbers
