-- Claims sets of tasks from groups that are due: GroupsRole.claimDueSets, some groups.
--
-- KEYS
--   1 aggregationSets
--   2 groups
--   3… the tasks of each group; then, if the limit is not 0, group by group, the set that is claimed if it is due
-- ARGV
--   1 now: seconds
--   2 setDeadline: seconds; then a claimed set goes back to its group
--   3 limit: sets; 0 only reads when the groups are due
--   4 mostTasks: of one set; after that many in all sets the call ends
--   5 heard: '1' when the groups are not from the list, but keys that have changed: one that is not listed is listed, a claimed set is left alone
--   6 policies: the number of groups
--   7… name, grace period, maximal delay and maximal size of each group; times in seconds, 0 is no limit
-- Returns
--   how many groups were checked, when each of them is due, as a text with spaces ('-': no tasks wait there), and the indexes of the claimed ones
--
-- Uses shared/spread.lua

local call, try = redis.call, redis.pcall
local now, limit, most, heard, count = tonumber(ARGV[1]), tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5] == '1', tonumber(ARGV[6])

call('ZCARD', KEYS[1])
call('SCARD', KEYS[2])

local claimed, tasks, dues = {}, 0, {}

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

-- Go's forwarder and recoverer put tasks into a group and do not list it.
local function is_group(key, name)
  if not heard then return true end
  if call('ZSCORE', KEYS[1], key) then return false end
  call('SADD', KEYS[2], name)
  return true
end

for i = 1, count do
  if (limit > 0 and #claimed >= limit) or tasks >= most then break end
  local group, set, at = KEYS[i + 2], KEYS[i + count + 2], 4 * i + 3
  local size = try('ZCARD', group)
  dues[i] = '-'
  if size == 0 then
    if not heard then call('SREM', KEYS[2], ARGV[at]) end
  elseif type(size) == 'number' and is_group(group, ARGV[at]) then
    local due, take = judge(group, size, at)
    if due > now or limit == 0 then
      dues[i] = string.format('%.0f', math.ceil(math.max(due, 0)))
    else
      move(group, set, size, take)
      call('ZADD', KEYS[1], ARGV[2], set)
      if take == size then call('SREM', KEYS[2], ARGV[at]) else dues[i] = ARGV[1] end
      claimed[#claimed + 1] = i
      tasks = tasks + take
    end
  end
end
return { #dues, table.concat(dues, ' '), claimed }
