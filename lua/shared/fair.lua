-- The lines of a fair queue, as F. The last KEYS are fairRing, fairHeld, fairShares, fairSlots and fairTotal; the last ARGV are how
-- the keys of lines, of the tasks that hold a slot, and of counted starts begin,
-- and for how many milliseconds after the call a task that is taken may wait for its start.
--
-- A task that waits for its turn is in the line of its key: a group of asynq that no list names, so that Go can show, run, archive
-- and delete it, and nobody aggregates it. A key with a line is in the ring, by the turns that it has had (a key of weight 2 pays half for a
-- turn), or, while a limit of its own holds it back, in `held`, by the time in milliseconds of the next look. A key without a line is
-- nowhere. Who holds a slot of a key with a concurrency is in a set of the key, and in `slots`; before such a key is held back, those
-- that no longer run are removed from it.
--
-- Uses shared/spread.lua
-- Uses shared/starts.lua
-- Uses shared/share-limits.lua
-- Uses shared/slots.lua
local F = { lease = KEYS[4] }
do
  local call, try = redis.call, redis.pcall
  -- A key whose slots are taken is looked at again after this time, as nobody says that a Go server has ended a task.
  local look_again = 2000
  -- Bounds of one call: keys that are visited, held keys that are looked at again, tasks that others have put into `pending`.
  local MOST_KEYS, MOST_OPENED, MOST_SORTED = 2000, 500, 512
  -- No key is held for longer than for this time and two windows of its rate, but by a server whose clock is ahead.
  local LONG_MS, SAMPLED = 2000, 3
  local HEADER = 'asynq-fairness'

  local allowance = tonumber(table.remove(ARGV))
  local rates, running, lines = table.remove(ARGV), table.remove(ARGV), table.remove(ARGV)
  local total_key, slots, shares, held, ring = table.remove(KEYS), table.remove(KEYS), table.remove(KEYS), table.remove(KEYS), table.remove(KEYS)
  local task_prefix, now_seconds, now_nanos = ARGV[1], tonumber(ARGV[2]), ARGV[3]
  local now_ms = tonumber(string.sub(now_nanos, 1, -7))
  local group = string.sub(lines, #string.match(lines, '^.*:g:') + 1)

  -- Also checks the types of the keys. Most queues have no limits.
  local keys_in_ring, has_held, has_shares, has_slots = call('ZCARD', ring), false, false, false
  if call('EXISTS', held, shares, slots) > 0 then
    has_held, has_shares, has_slots = call('ZCARD', held) > 0, call('HLEN', shares) > 0, call('HLEN', slots) > 0
  end
  local change = 0
  -- Tasks that this call has given a slot: they have no lease yet.
  local drawn_now = {}
  -- Tasks whose start this call has counted by the rate of their key: what was counted.
  local counted_now = {}
  -- How many tasks are in `pending`, once it is known.
  local in_pending

  local function reversed(list, first)
    local back = {}
    for i = #list, first or 1, -1 do
      back[#back + 1] = list[i]
    end
    return back
  end

  -- One field of a message of protobuf: its number, its value or where its bytes begin and end, and where the next one is.
  local function varint(text, at)
    local value, unit = 0, 1
    while true do
      local byte = string.byte(text, at)
      if not byte then return nil end
      at = at + 1
      value, unit = value + byte % 128 * unit, unit * 128
      if byte < 128 then return value, at end
    end
  end

  local function field(text, at)
    local tag, first = varint(text, at)
    if not tag then return nil end
    local value, after = varint(text, first)
    if not value then return nil end
    if tag % 8 == 0 then return (tag - tag % 8) / 8, nil, nil, after end
    if tag % 8 ~= 2 then return nil end
    return (tag - tag % 8) / 8, after, after + value - 1, after + value
  end

  -- The share of a task by its message, and its key; '' is the key of those without one.
  function F.share_of(message)
    if not string.find(message, HEADER, 1, true) then return '', '' end
    local at = 1
    while at <= #message do
      local number, first, last, after = field(message, at)
      if not number then break end
      if number == 15 and first then
        local _, from, to, behind = field(message, first)
        if from and string.sub(message, from, to) == HEADER then
          local _, start, stop = field(message, behind)
          local text = start and string.sub(message, start, stop) or ''
          local weight, key = string.match(text, '^(%S+) %d+ %d+ %d+ (.+)$')
          local turns = tonumber(weight)
          if key and turns and turns > 0 and turns < math.huge then return key, text end
        end
      end
      at = after
    end
    return '', ''
  end

  -- Behind the key that is next, as if it had just had its turn: so a key gains nothing by coming again and again.
  local function join(key, weight)
    if has_held and call('ZSCORE', held, key) then return end
    local first = call('ZRANGE', ring, '0', '0', 'WITHSCORES')[2]
    if call('ZADD', ring, 'NX', first and first + 1 / weight or '0', key) == 1 then keys_in_ring = keys_in_ring + 1 end
  end

  -- A key that is held back has its turns again.
  local function open(key)
    if has_held and call('ZREM', held, key) == 1 then join(key, 1) end
  end

  -- Returns the weight of the key. The share of most says nothing but the key. A held key may have room by other limits.
  local function note_share(key, text)
    if not has_shares and (text == '' or string.find(text, '^1 0 0 ')) then return 1 end
    local weight, concurrency, rate = share_limits(text)
    if weight ~= 1 or concurrency > 0 or rate > 0 then
      if not has_shares or call('HGET', shares, key) ~= text then
        call('HSET', shares, key, text)
        open(key)
      end
      has_shares = true
    elseif has_shares and call('HDEL', shares, key) == 1 then
      open(key)
    end
    return weight
  end

  -- Tasks that F.push_all puts into the lines of their keys.
  local added, added_keys, added_texts = {}, {}, {}
  function F.add(key, text, id)
    local list = added[key]
    if list then
      list[#list + 1] = id
    else
      added[key], added_keys[#added_keys + 1] = { id }, key
    end
    added_texts[key] = text
  end

  -- What a command has of each of many names, in their order: false when it has nothing.
  local function each_of(command, where, names)
    local count = #names
    if count <= 1000 then return call(command, where, unpack(names)) end
    local found = {}
    for first = 1, count, 1000 do
      local some = call(command, where, unpack(names, first, math.min(first + 999, count)))
      for i = 1, #some do
        found[first + i - 1] = some[i]
      end
    end
    return found
  end

  -- Puts the added tasks into lines, behind those that wait there, or with `front` before them. Their hashes are the caller's. What many
  -- keys can share is one command for all of them.
  function F.push_all(front)
    local count = #added_keys
    if count == 0 then return end
    local in_ring, in_held = each_of('ZMSCORE', ring, added_keys), has_held and each_of('ZMSCORE', held, added_keys)
    local names, fresh = {}, {}
    for i = 1, count do
      local line = lines .. added_keys[i]
      names[i] = line
      if not (in_ring[i] or in_held and in_held[i]) then fresh[#fresh + 1] = line end
    end
    -- A key that has no turns has no line either, unless Redis has lost something.
    local all_fresh = true
    for first = 1, #fresh, 1000 do
      all_fresh = call('EXISTS', unpack(fresh, first, math.min(first + 999, #fresh))) == 0 and all_fresh
    end
    local next_turn, joining = nil, {}
    if #fresh > 0 then next_turn = call('ZRANGE', ring, '0', '0', 'WITHSCORES')[2] end
    local place, now_us = front and '0' or '-1', now_ms * 1000
    for i = 1, count do
      local key, line = added_keys[i], names[i]
      local ids, weight = added[key], note_share(key, added_texts[key])
      local joins = not (in_ring[i] or in_held and in_held[i])
      local at
      if not (joins and all_fresh) then
        local ends = try('ZRANGE', line, place, place, 'WITHSCORES')
        if ends.err then call('DEL', line) else at = tonumber(ends[2]) end
      end
      if front then
        at = (at or now_us) - #ids
      else
        at = at and at + 1 > now_us and at + 1 or now_us
      end
      if #ids == 1 then
        call('ZADD', line, at, ids[1])
      else
        local entries = {}
        for j = 1, #ids do
          entries[2 * j - 1], entries[2 * j] = at + j - 1, ids[j]
        end
        spread('ZADD', line, entries)
      end
      change = change + #ids
      if joins then
        -- As in `join`: the first of an empty ring has the turn, the others come behind it.
        joining[#joining + 1] = next_turn and next_turn + 1 / weight or '0'
        joining[#joining + 1] = key
        next_turn = next_turn or 0
      end
    end
    spread('ZADD', ring, joining)
    keys_in_ring = keys_in_ring + #joining / 2
    added, added_keys, added_texts = {}, {}, {}
  end

  -- The hash of a task that is put into a line says so.
  function F.group_of(key)
    return group .. key
  end

  -- Forgets the slots of tasks whose holders are dead, or Go servers. Returns how many are taken.
  local function count_slots(key)
    local set = running .. key
    local ids = try('SMEMBERS', set)
    if ids.err then
      call('DEL', set)
      return 0
    end
    local taken, free = divide_slots(ids, F.lease, task_prefix, now_seconds, drawn_now)
    if #free > 0 then
      spread('SREM', set, free)
      spread('HDEL', slots, free)
    end
    return #taken
  end

  -- How many tasks of a key may start now, its weight, and what to do when they have: when to look again, and how to count.
  local function room_of(key, text)
    local weight, concurrency, rate, window = share_limits(text)
    local room, again, starts, time, gone, behind = math.huge, nil, nil, nil, nil, nil
    if concurrency > 0 then
      local taken = try('SCARD', running .. key)
      if type(taken) ~= 'number' or taken >= concurrency then taken = count_slots(key) end
      room, again = math.max(0, concurrency - taken), now_ms + look_again
    end
    if rate > 0 then
      starts = rates .. window .. ':' .. key
      if type(try('HLEN', starts)) ~= 'number' then call('DEL', starts) end
      local left, wait
      left, wait, time, gone, behind = starts_left(starts, rate, window, now_nanos)
      if left < room then room, again = left, now_ms + math.max(1, wait) end
    end
    return room, weight, again, concurrency > 0, starts, rate, window, time, gone, behind
  end

  -- Takes up to `count` tasks of the lines, turn by turn, and adds them to `got`. They have left their lines, and have their slots.
  -- A score costs more as text than all else of its member: so those of lines are not read, those of the ring only if they differ, and
  -- each is written as text once.
  local function draw(got, count)
    local visited, score_texts = 0, {}
    local total, most = #got, #got + count
    while total < most and visited < MOST_KEYS do
      local wanted = math.min(most - total, MOST_KEYS)
      local names = call('ZRANGE', ring, '0', wanted - 1)
      local keys = #names
      if keys == 0 then break end
      visited = visited + keys
      local ends = keys == wanted and call('ZMSCORE', ring, names[1], names[keys])
      local scores, score = not (ends and ends[1] == ends[2]) and each_of('ZMSCORE', ring, names), ends and tonumber(ends[1])
      local texts = has_shares and each_of('HMGET', shares, names)
      local turns, order, picks, rooms, left, gone, back = {}, {}, {}, {}, most - total, {}, {}
      if left == keys and not texts and (not scores or scores[keys] - scores[1] <= 1) then
        -- None is so far behind that it gets a second turn before the others have their first.
        for i = 1, keys do
          turns[i], picks[i] = (scores and tonumber(scores[i]) or score) + 1, 1
        end
        left = 0
      else
        for i = 1, keys do
          turns[i], order[i], picks[i] = scores and tonumber(scores[i]) or score, i, 0
        end
      end
      -- Whose turn is next, until all turns are given away: `order` from `head` to `tail` is sorted by the turns had.
      local head, tail = 1, keys
      while left > 0 and head <= tail do
        local i = order[head]
        head = head + 1
        local turn = turns[i] + 1
        local room = rooms[i]
        if texts and texts[i] then
          if not room then
            room = { room_of(names[i], texts[i]) }
            rooms[i] = room
          end
          turn = turns[i] + 1 / room[2]
        end
        if not room or picks[i] < room[1] then
          picks[i], turns[i], left, tail = picks[i] + 1, turn, left - 1, tail + 1
          local at = tail
          while at > head and turns[order[at - 1]] > turn do
            order[at] = order[at - 1]
            at = at - 1
          end
          order[at] = i
        else
          room.full = true
        end
      end
      for i = 1, keys do
        local room, key, picked = rooms[i], names[i], picks[i]
        if picked > 0 or room then
          local number = 0
          if picked > 0 then
            local line, last = lines .. key, picked == 1 and '0' or picked - 1
            local ids = try('ZRANGE', line, '0', last)
            number = #ids
            for at = 1, number do
              got[total + at] = ids[at]
            end
            if number > 0 then call('ZREMRANGEBYRANK', line, '0', last) end
            total, change = total + number, change - number
          end
          local waits = number == picked
          if room then
            if number > 0 and room[4] then
              spread('SADD', running .. key, got, total - number + 1, total)
              for at = total - number + 1, total do
                call('HSET', slots, got[at], key)
                drawn_now[got[at]] = true
              end
              has_slots = true
            end
            if number > 0 and room[5] then
              local counted_at = latest_start(room[6], room[7], room[8], allowance, room[10])
              count_starts(room[5], number, counted_at, room[7], room[8], room[9])
              local counted = { key = key, text = texts[i], turn = 1 / room[2], starts = room[5], at = string.format('%.0f', counted_at) }
              for at = total - number + 1, total do
                counted_now[got[at]] = counted
              end
            end
            if waits and room.full then waits = try('ZCARD', lines .. key) ~= 0 end
            if not waits then call('HDEL', shares, key) end
          end
          if not waits then
            gone[#gone + 1] = key
          elseif room and room.full then
            gone[#gone + 1] = key
            call('ZADD', held, string.format('%.0f', room[3]), key)
            has_held = true
          else
            local turn = turns[i]
            local text = score_texts[turn]
            if not text then
              text = string.format('%.17g', turn)
              score_texts[turn] = text
            end
            local at = #back
            back[at + 1], back[at + 2] = text, key
          end
        end
      end
      spread('ZREM', ring, gone)
      spread('ZADD', ring, back)
      keys_in_ring = keys_in_ring - #gone
    end
  end

  -- What others have put into `pending` gets into lines, as far as it has not had its turn. Returns what has.
  local function sort_pending(pending)
    if in_pending == 0 then return {} end
    local ids = call('RPOP', pending, MOST_SORTED)
    local turns = {}
    for i = 1, ids and #ids or 0 do
      local key = task_prefix .. ids[i]
      local fields = try('HMGET', key, 'msg', 'turn', 'pending_since')
      local message = not fields.err and fields[1]
      if not message or fields[2] and fields[2] == fields[3] then
        turns[#turns + 1] = ids[i]
      else
        local name, text = F.share_of(message)
        call('HSET', key, 'state', 'aggregating', 'group', group .. name)
        if fields[2] then call('HDEL', key, 'turn') end
        F.add(name, text, ids[i])
      end
    end
    F.push_all()
    return turns
  end

  -- What waits in `pending`, `size` tasks, came before the tasks that are added next, and so gets into lines before them. If the last that
  -- came there has had its turn, so have all.
  function F.let_first(pending, size)
    if size == 0 then return end
    local fields = try('HMGET', task_prefix .. call('LINDEX', pending, '0'), 'msg', 'turn', 'pending_since')
    if not fields.err and fields[1] and fields[2] and fields[2] == fields[3] then return end
    spread('RPUSH', pending, reversed(sort_pending(pending)))
  end

  -- Puts tasks that have had their turn into `pending`, before those that wait there; they keep their slots. `ids`: the next one is last.
  function F.keep_turns(pending, ids)
    for i = 1, #ids do
      local key = task_prefix .. ids[i]
      local fields = try('HMGET', key, 'msg', 'pending_since', 'turn')
      local since = fields[2] or now_nanos
      if fields[1] and fields[3] ~= since then
        call('HSET', key, 'state', 'pending', 'pending_since', since, 'turn', since)
        call('HDEL', key, 'group')
      end
    end
    spread('RPUSH', pending, ids)
    in_pending = nil
  end

  -- Tasks that were next and that this call does not take. Those whose start it has counted go back to the front of their lines: nobody
  -- knows when they start. The others keep their turns. `ids`: the next one is last.
  function F.leave(pending, ids)
    local turns, back = {}, {}
    for i = 1, #ids do
      local list = counted_now[ids[i]] and back or turns
      list[#list + 1] = ids[i]
    end
    F.keep_turns(pending, turns)
    if #back == 0 then return end
    F.left(back, #back)
    for i = #back, 1, -1 do
      local counted = counted_now[back[i]]
      call('HINCRBY', counted.starts, counted.at, '-1')
      if call('ZSCORE', ring, counted.key) then call('ZINCRBY', ring, string.format('%.17g', -counted.turn), counted.key) end
      F.add(counted.key, counted.text, back[i])
    end
    F.push_all(true)
    for i = 1, #back do
      open(counted_now[back[i]].key)
    end
  end

  -- Of some held keys those that are held for too long.
  local held_long
  local function find_held_long()
    if held_long then return held_long end
    held_long = {}
    local some = call('ZRANDMEMBER', held, SAMPLED, 'WITHSCORES')
    for i = 1, #some, 2 do
      local long = tonumber(some[i + 1]) - now_ms - LONG_MS
      if long > 0 then
        local _, _, _, window = share_limits(call('HGET', shares, some[i]) or '')
        if long > 2 * window then held_long[#held_long + 1] = some[i] end
      end
    end
    return held_long
  end

  -- Held keys whose time has come have their turns again.
  local function open_held()
    if not has_held then return end
    local due = call('ZRANGE', held, '-inf', now_ms, 'BYSCORE', 'LIMIT', 0, MOST_OPENED)
    for _, key in ipairs(find_held_long()) do
      due[#due + 1] = key
    end
    held_long = {}
    spread('ZREM', held, due)
    for i = 1, #due do
      join(due[i], 1)
    end
  end

  -- At least how many tasks may be claimed; a guess. `pending`: how many are there.
  function F.backlog(pending)
    in_pending = pending
    if keys_in_ring > 0 then return pending + math.max(keys_in_ring, 256) end
    if has_held then
      local first = call('ZRANGE', held, 0, 0, 'WITHSCORES')[2]
      if first and (tonumber(first) <= now_ms or #find_held_long() > 0) then return pending + 256 end
    end
    return pending
  end

  -- Tasks of `pending` and of the lines that are next, at most `count`, and how many of them were in `pending`; nil when there is none.
  function F.next(pending, count)
    open_held()
    local turns = sort_pending(pending)
    if #turns > count then
      spread('RPUSH', pending, reversed(turns, count + 1))
      for i = #turns, count + 1, -1 do
        turns[i] = nil
      end
    end
    local had = #turns
    if had < count then draw(turns, count - had) end
    if #turns == 0 then return nil end
    return turns, had
  end

  -- Gives turns to tasks for servers that know no lines, until `most` are in `pending`. Slots of what they have ended are found here.
  -- Returns how many there were, and how many have had their turn now.
  function F.fill(pending, most)
    look_again = 250
    local some, counted = has_slots and call('HRANDFIELD', slots, 20, 'WITHVALUES') or {}, {}
    for i = 2, #some, 2 do
      local key = some[i]
      if not counted[key] then count_slots(key) end
      counted[key] = true
    end
    open_held()
    local turns = sort_pending(pending)
    local had = #turns
    if had < most then draw(turns, most - had) end
    F.keep_turns(pending, reversed(turns))
    return { had, #turns - had }
  end

  -- Tasks have left their servers: their slots are free.
  function F.left(ids, count)
    if not has_slots then return end
    for first = 1, count, 1000 do
      local last = math.min(first + 999, count)
      local names, freed = call('HMGET', slots, unpack(ids, first, last)), {}
      for i = first, last do
        local key = names[i - first + 1]
        if key then
          freed[#freed + 1] = ids[i]
          try('SREM', running .. key, ids[i])
          open(key)
        end
      end
      if #freed > 0 then call('HDEL', slots, unpack(freed)) end
    end
  end

  -- A task that goes back to where it was: the front of its line. `counted_from`: see give_back_start of starts.lua.
  function F.put_back(id, counted_from)
    local key = task_prefix .. id
    local message = try('HGET', key, 'msg')
    local name, text = F.share_of(type(message) == 'string' and message or '')
    call('HSET', key, 'state', 'aggregating', 'group', group .. name)
    call('HDEL', key, 'turn')
    F.add(name, text, id)
    F.push_all(true)
    if not counted_from then return end
    local _, _, rate, window = share_limits(text)
    if rate > 0 and give_back_start(rates .. window .. ':' .. name, counted_from, window, now_ms) then open(name) end
  end

  -- Writes how many tasks wait in lines; of no line is nothing left behind. A reply gets the milliseconds until a held key may have
  -- room before all else, 0 when none is held.
  function F.finish(reply)
    local first = has_held and call('ZRANGE', held, 0, 0, 'WITHSCORES')[2]
    if keys_in_ring <= 0 and not first and call('EXISTS', ring) == 0 then
      call('DEL', total_key, shares)
    elseif change ~= 0 then
      local total = try('INCRBY', total_key, change)
      if type(total) ~= 'number' or total < 0 then call('SET', total_key, math.max(0, type(total) == 'number' and total or change)) end
    end
    if reply then table.insert(reply, 1, first and math.max(1, math.ceil(tonumber(first) - now_ms)) or 0) end
  end
end
