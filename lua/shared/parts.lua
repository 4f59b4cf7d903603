-- Parts: what a batch has in this place. Part of links.lua.
--
-- `part:<batch>` is a hash: home; made, ok and dead: how many members there are, have succeeded, have died; died: one has;
-- v: counts the reports to the home; scan: how far the keeper has looked; x:<base>: a chunk that was given up. The members are
-- bits by number in `part:<batch>:made`, `:ok` and `:dead`. One that has succeeded is never dead again.
do
  local call, try, pairs, type, byte, char = redis.call, redis.pcall, pairs, type, string.byte, string.char
  -- The keeper looks for members that ended unseen: so often, in slices of so many bytes. So much of it is done by one script for all
  -- batches: a member that is looked at is one, a slice some.
  local SCAN_SECONDS, SLICE = 2, 256
  local budget, SLICE_COST = 2000, 20
  -- A part where all have ended asks so often whether there still is a batch.
  local IDLE_SECONDS = 86400
  -- Members are near each other when their bytes fit into one call of Lua, and are not many more than they: so many numbers
  -- in all, and for each of them.
  local NEAR, SPREAD = 16000, 32
  local BITS = { [0] = 128, 64, 32, 16, 8, 4, 2, 1 }

  -- The members that have ended in this script, by batch.
  local ended = {}

  local function part_key(batch)
    return L.base .. 'part:' .. batch
  end

  -- The bytes of a string of bits, nil of a key that holds something else. Without a key: false.
  local function read_bytes(key, from, to)
    local stored = key and try('GETRANGE', key, from, to)
    if not stored then return false end
    return type(stored) == 'string' and { byte(stored, 1, -1) } or nil
  end

  -- Members that end together are mostly near each other: their bytes are read and written at once.
  local function choose_near(numbers, with, without, set, first, last)
    local from, to = (first - first % 8) / 8, (last - last % 8) / 8
    local there, absent = read_bytes(with, from, to), read_bytes(without, from, to)
    if there == nil or absent == nil then return {} end
    local chosen, n, start = {}, 0, from * 8
    for i = 1, #numbers do
      local number = numbers[i]
      local rest = (number - start) % 8
      local at, value = (number - start - rest) / 8 + 1, BITS[rest]
      local twice = value + value
      if not there or (there[at] or 0) % twice >= value then
        local bits = absent and absent[at] or 0
        if bits % twice < value then
          n = n + 1
          chosen[n] = number
          if set then absent[at] = bits + value end
        end
      end
    end
    if set and n > 0 then
      for at = 1, to - from + 1 do
        absent[at] = absent[at] or 0
      end
      call('SETRANGE', without, from, char(unpack(absent)))
    end
    return chosen
  end

  local function choose_far(numbers, with, without, set)
    local chosen = {}
    for i = 1, #numbers do
      local number = numbers[i]
      local is_chosen = not with or try('GETBIT', with, number) == 1
      if is_chosen and set then
        is_chosen = L.guard(call, 'SETBIT', without, number, '1') == 0
      elseif is_chosen and without then
        is_chosen = try('GETBIT', without, number) == 0
      end
      if is_chosen then chosen[#chosen + 1] = number end
    end
    return chosen
  end

  -- Those of the numbers that have their bit in the key `with`, and not in the key `without`; either may be nil. With `set`, they get
  -- it there. Of a key that holds something else, nothing is chosen.
  local function choose(numbers, with, without, set)
    if #numbers == 0 then return numbers end
    local first, last = numbers[1], numbers[1]
    for i = 2, #numbers do
      local number = numbers[i]
      if number < first then first = number elseif number > last then last = number end
    end
    local near = last - first < math.min(NEAR, SPREAD * #numbers)
    return (near and choose_near or choose_far)(numbers, with, without, set, first, last)
  end

  local function read(batch)
    local part = try('HMGET', part_key(batch), 'home', 'made', 'ok', 'dead', 'died', 'scan')
    if not part[1] then return nil end
    return {
      home = part[1],
      made = tonumber(part[2]) or 0,
      ok = tonumber(part[3]) or 0,
      dead = tonumber(part[4]) or 0,
      died = part[5] and true or false,
      scan = tonumber(part[6]) or 0,
    }
  end

  -- `asked`: how many members the home knows of, when it has asked.
  local function report(batch, part, asked)
    local body = { kind = 'part', batch = batch, queue = L.place, asked = asked }
    body.v = call('HINCRBY', part_key(batch), 'v', 1)
    body.made, body.ok, body.dead, body.died = part.made, part.ok, part.dead, part.died
    L.post(part.home, 'part ' .. batch, body)
  end

  local function settle(batch, numbers)
    local part, key = read(batch), part_key(batch)
    if not part then return end
    local dead, revived = {}, {}
    if #numbers.dead > 0 then
      dead = choose(choose(numbers.dead, key .. ':made', key .. ':ok'), nil, key .. ':dead', true)
    end
    local ok = choose(numbers.ok, key .. ':made', key .. ':ok', true)
    if part.dead + #dead > 0 then revived = choose(ok, key .. ':dead') end
    for i = 1, #revived do
      call('SETBIT', key .. ':dead', revived[i], '0')
    end
    if #ok + #dead == 0 then return end
    local first = #dead > 0 and not part.died
    part.ok, part.dead, part.died = part.ok + #ok, part.dead + #dead - #revived, part.died or first
    call('HSET', key, 'ok', part.ok, 'dead', part.dead)
    if first then call('HSET', key, 'died', '1') end
    if first or part.ok + part.dead == part.made then report(batch, part) end
  end

  -- How a member has ended, as far as the batch knows: succeeded, dead or nil.
  function L.end_of_member(batch, number)
    local key = part_key(batch)
    if try('GETBIT', key .. ':ok', number) == 1 then return 'succeeded' end
    return try('GETBIT', key .. ':dead', number) == 1 and 'dead' or nil
  end

  -- The numbers of members that have ended in this script. All are dealt with at once, at the end of L.work.
  function L.ended_members(batch)
    local numbers = ended[batch]
    if not numbers then
      numbers = { ok = {}, dead = {} }
      ended[batch] = numbers
    end
    return numbers
  end

  function L.member_ended(batch, number, ok)
    local numbers = L.ended_members(batch)
    local list = ok and numbers.ok or numbers.dead
    list[#list + 1] = number
  end

  L.afterwards[#L.afterwards + 1] = function()
    local batches = ended
    ended = {}
    for batch, numbers in pairs(batches) do
      settle(batch, numbers)
    end
  end

  -- The queue where the batch lives.
  function L.home_of(batch)
    local home = try('HGET', part_key(batch), 'home')
    return type(home) == 'string' and home or L.place
  end

  local function arm(batch, seconds)
    call('ZADD', L.timers, L.seconds + seconds, 'part ' .. batch)
  end

  -- The home asks what became of a chunk that nobody has confirmed. One that was not made is given up, for ever.
  L.on.ask = function(body)
    local key, numbers = part_key(body.batch), {}
    for number = body.base, body.base + body.count - 1 do
      numbers[#numbers + 1] = number
    end
    local created = #choose(numbers, key .. ':made')
    if created == 0 then
      call('HSET', key, 'x:' .. body.base, '1', 'home', body.home)
      L.note_batch(body.batch, true)
      call('ZADD', L.timers, 'NX', L.seconds + SCAN_SECONDS, 'part ' .. body.batch)
    end
    local answer = { kind = 'chunk', batch = body.batch, base = body.base, created = created }
    L.post(body.home, 'chunk ' .. body.batch .. ' ' .. body.base, answer)
  end

  local function count_bits(key)
    local count = try('BITCOUNT', key)
    return type(count) == 'number' and count or 0
  end

  -- The home asks how far a part is: its last word may be lost, or the part itself. What counts are the bits.
  L.on.audit = function(body)
    local key, part = part_key(body.batch), read(body.batch)
    if part then
      call('ZADD', L.timers, 'NX', L.seconds + SCAN_SECONDS, 'part ' .. body.batch) -- it may be lost
      part.made, part.ok, part.dead = count_bits(key .. ':made'), count_bits(key .. ':ok'), count_bits(key .. ':dead')
      call('HSET', key, 'made', part.made, 'ok', part.ok, 'dead', part.dead)
      local v = tonumber(call('HGET', key, 'v')) or 0
      if v < body.v then call('HSET', key, 'v', body.v) end
      report(body.batch, part, body.asked)
    else
      local answer = { kind = 'part', batch = body.batch, queue = L.place, asked = body.asked, gone = true, v = body.v + 1 }
      L.post(body.home, 'part ' .. body.batch, answer)
    end
  end

  L.on.forget = function(body)
    local key = part_key(body.batch)
    call('DEL', key, key .. ':made', key .. ':ok', key .. ':dead')
    L.note_batch(body.batch, false)
    call('ZREM', L.timers, 'part ' .. body.batch)
  end

  -- Tells of the members among these numbers that are gone, or in a state that is an end.
  local function look(batch, first, open)
    local seen = 0
    for i = 0, 7 do
      if bit.band(open, BITS[i]) ~= 0 then
        seen = seen + 1
        local id = batch .. '~' .. string.format('%.0f', first + i)
        local state = try('HGET', L.task_prefix .. id, 'state')
        if type(state) ~= 'string' or state == 'completed' or state == 'archived' then L.notice(id) end
      end
    end
    return seen
  end

  -- Looks at the next members that have not ended, as far as is known. Returns how far it has come.
  local function scan(batch, from)
    local key = part_key(batch)
    while budget > 0 do
      local to = from + SLICE - 1
      local made = try('GETRANGE', key .. ':made', from, to)
      if type(made) ~= 'string' or made == '' then return 0 end
      local ok, dead = try('GETRANGE', key .. ':ok', from, to), try('GETRANGE', key .. ':dead', from, to)
      budget = budget - SLICE_COST
      for i = 1, #made do
        local members = string.byte(made, i)
        local over = bit.bor(string.byte(ok, i) or 0, string.byte(dead, i) or 0)
        local open = bit.band(members, bit.bnot(over))
        if open ~= 0 then budget = budget - look(batch, (from + i - 1) * 8, open) end
        if budget <= 0 then return from + i end
      end
      from = from + #made
    end
    return from
  end

  L.due.part = function(batch)
    local part = read(batch)
    if not part then return end
    L.note_batch(batch, true)
    if part.ok + part.dead >= part.made then
      report(batch, part)
      return arm(batch, IDLE_SECONDS)
    end
    -- One that has to wait comes first in the next pass.
    if budget <= 0 then return arm(batch, SCAN_SECONDS - 1) end
    call('HSET', part_key(batch), 'scan', scan(batch, part.scan))
    arm(batch, SCAN_SECONDS)
  end
end
