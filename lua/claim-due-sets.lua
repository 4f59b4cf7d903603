-- Claims sets of tasks from groups that are due: GroupsRole.claimDueSets, some groups.
--
-- KEYS
--   1 aggregationSets
--   2 groups
--   3… the tasks of each group; then, group by group, the set that is claimed if it is due
-- ARGV
--   1 now: seconds
--   2 setDeadline: seconds; then a claimed set goes back to its group
--   3 limit: sets; 0 only reads when the next group is due
--   4 mostTasks: of one set; after that many in all sets the call ends
--   5 policies: the number of groups
--   6… name, grace period, maximal delay and maximal size of each group; times in seconds, 0 is no limit
-- Returns
--   how many groups were checked, when the first of them is due ('' when none is), and the indexes of the claimed ones
--
-- Uses shared/spread.lua

local call, try = redis.call, redis.pcall
local now, limit, most, count = tonumber(ARGV[1]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])

call('ZCARD', KEYS[1])
call('SCARD', KEYS[2])

local claimed, tasks, next_due, seen = {}, 0, nil, 0

local function wait_until(time)
  if not next_due or time < next_due then next_due = time end
end

local function score_at(group, rank)
  return tonumber(call('ZRANGE', group, rank, rank, 'WITHSCORES')[2])
end

-- When the last task joined. A score far in the future is damaged, and must not delay the others for ever.
local function last_joined(group)
  local last = score_at(group, -1)
  if last <= now + 86400 then return last end
  return tonumber(call('ZRANGE', group, now, '-inf', 'BYSCORE', 'REV', 'LIMIT', 0, 1, 'WITHSCORES')[2] or '-inf')
end

-- When the group is due, and how many of its tasks a set takes.
local function judge(group, size, at)
  local grace, delay, greatest = tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])
  local take = most
  if greatest > 0 and greatest < most then take = greatest end
  if take > size then take = size end
  if greatest > 0 and size >= greatest then return now, take end
  local due = last_joined(group) + grace
  if delay > 0 then due = math.min(due, score_at(group, 0) + delay) end
  return due, take
end

local function move(group, set, size, take)
  if take == size then return call('RENAME', group, set) end
  local entries = call('ZRANGE', group, 0, take - 1, 'WITHSCORES')
  for i = 1, #entries, 2 do
    entries[i], entries[i + 1] = entries[i + 1], entries[i]
  end
  spread('ZADD', set, entries)
  call('ZREMRANGEBYRANK', group, 0, take - 1)
end

for i = 1, count do
  if (limit > 0 and #claimed >= limit) or tasks >= most then break end
  seen = i
  local group, set, at = KEYS[i + 2], KEYS[i + count + 2], 4 * i + 2
  local size = try('ZCARD', group)
  if size == 0 then
    call('SREM', KEYS[2], ARGV[at])
  elseif type(size) == 'number' then
    local due, take = judge(group, size, at)
    if due > now or limit == 0 then
      wait_until(math.max(due, now))
    else
      move(group, set, size, take)
      call('ZADD', KEYS[1], ARGV[2], set)
      if take == size then call('SREM', KEYS[2], ARGV[at]) else wait_until(now) end
      claimed[#claimed + 1] = i
      tasks = tasks + take
    end
  end
end
return { seen, next_due and string.format('%.0f', next_due) or '', claimed }
