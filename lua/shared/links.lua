-- The engine of links: what happens in one place, in one script. LinksRole says what they are for.
--
-- A script that includes it has an empty table `L`, and calls L.open first. What is sent to a place is a body (a table with
-- `kind`) and bytes: L.post works it off here when the place is this one, else stores it in the outbox and returns it as a
-- parcel. Each kind has a handler in L.on, and each kind of watcher a function in L.tell that posts the end of a task to it.
-- Handlers apply by identity: twice is once. Everything a handler needs is checked by L.open, before the first write.
do
  local call, try, type, find, sub = redis.call, redis.pcall, type, string.find, string.sub
  -- How many bodies one script works off; it leaves the others to the next delivery.
  local MOST_BODIES = 2000
  local TOO_LONG = 65
  -- A list of watchers that is longer is added to in a hash, `watchers:<id>`; and how many of these one script tells.
  local LONG_LIST, FAN_OUT = 16384, 500

  local queue, head, tail = {}, 1, 0
  local posted, positions = {}, {}

  L.on, L.tell, L.due, L.audits, L.afterwards = {}, {}, {}, {}, {}

  -- `task_prefix`, `now` (seconds) and `now_nanos` as text.
  function L.open(task_prefix, now, now_nanos)
    L.task_prefix, L.base = task_prefix, string.sub(task_prefix, 1, -3)
    L.place = string.match(L.base, ':{(.*)}:$')
    L.now, L.seconds, L.now_nanos, L.damage = now, tonumber(now), now_nanos, false
    L.millis = tonumber(string.sub(now_nanos, 1, -7))
    L.pending, L.scheduled, L.archived = L.base .. 'pending', L.base .. 'scheduled', L.base .. 'archived'
    L.completed, L.waiting = L.base .. 'completed', L.base .. 'g:asynq:waiting'
    L.links, L.outbox, L.timers = L.base .. 'links', L.base .. 'outbox', L.base .. 'timers'
    L.has_links = call('HLEN', L.links) > 0
    call('HLEN', L.outbox)
    call('LLEN', L.pending)
    for _, set in ipairs({ L.scheduled, L.archived, L.completed, L.waiting, L.timers }) do
      call('ZCARD', set)
    end
  end

  -- Redis refuses a call so before it has written anything; the call fails as a whole.
  local REFUSALS = { 'OOM ', 'MISCONF ', 'NOREPLICAS ', 'READONLY ' }

  -- Calls `work`, and returns what it returns. What fails because somebody has damaged what is stored does not stop the others: it is
  -- noted in L.damage, and returned behind nil.
  function L.guard(work, ...)
    local done, problem = pcall(work, ...)
    if done then return problem end
    local text = type(problem) == 'table' and problem.err or tostring(problem)
    for i = 1, #REFUSALS do
      if string.find(text, REFUSALS[i], 1, true) then error(problem, 0) end
    end
    L.damage = text
    return nil, text
  end

  local function store(to, field, text, data)
    call('HSET', L.outbox, field, cmsgpack.pack({ to, text, data, L.seconds }))
    local at = positions[field]
    if not at then
      at = #posted
      positions[field] = at
    end
    posted[at + 1], posted[at + 2], posted[at + 3], posted[at + 4] = to, field, text, data
  end

  -- `key` is the identity of what is sent there: a newer body takes the place of an older one that has not left.
  function L.post(to, key, body, data)
    if to == L.place then
      tail = tail + 1
      queue[tail] = { key, body, data or '' }
    else
      store(to, to .. ' ' .. key, cjson.encode(body), data or '')
    end
  end

  -- Leaves a body of this place to the next delivery.
  function L.defer(key, body)
    store(L.place, L.place .. ' ' .. key, cjson.encode(body), '')
  end

  -- Calls `tell` with some fields of a hash, which are deleted when `consume`, and leaves the others to the next delivery: `body`
  -- has the cursor, nil at first.
  function L.fan_out(hash, key, body, consume, tell)
    local page = try('HSCAN', hash, body.cursor or '0', 'COUNT', FAN_OUT)
    if page.err then return end
    for i = 1, #page[2], 2 do
      local known, value = pcall(cjson.decode, page[2][i])
      if known then tell(value) end
      if consume then call('HDEL', hash, page[2][i]) end
    end
    if page[1] == '0' then return end
    body.cursor = page[1]
    L.defer(key, body)
  end

  -- What the process that has sent this script learns, for its events: LinkNews. It is among the parcels, and goes nowhere.
  function L.note(news)
    local n = #posted
    posted[n + 1], posted[n + 2], posted[n + 3], posted[n + 4] = '', '', cjson.encode(news), ''
  end

  -- Works off what was posted to this place, and what that causes here; then lets those write who have waited for the rest.
  function L.work()
    repeat
      while head <= tail do
        local key, body, data = unpack(queue[head])
        queue[head] = nil
        head = head + 1
        if head <= MOST_BODIES then
          L.guard(L.on[body.kind], body, data)
        else
          store(L.place, L.place .. ' ' .. key, cjson.encode(body), data)
        end
      end
      for i = 1, #L.afterwards do
        L.guard(L.afterwards[i])
      end
    until head > tail
    L.push_pending()
    L.write_links()
  end

  -- What this script has stored in the outbox, packed: to, key, body and data of each; and what it has noted.
  function L.parcels()
    return #posted > 0 and cmsgpack.pack(posted) or ''
  end

  -- What `links` says of a batch by its id: 1, or w when somebody watches a member of its own accord; false when this place has
  -- nothing of it. Mostly, many tasks of one script are of one batch.
  local batches = {}

  local prefix, prefix_length, prefix_batch, prefix_known

  -- The batch that a task is a member of, its number, and whether somebody watches members. nil when it is none, or when this
  -- place has nothing of the batch.
  function L.member_of(id)
    if prefix and find(id, prefix, 1, true) == 1 then
      return prefix_batch, tonumber(sub(id, prefix_length + 1)), prefix_known == 'w'
    end
    if not L.has_links or string.sub(id, 1, 6) ~= 'batch-' then return nil end
    local batch, number = string.match(id, '^(batch%-[^~]+)~(%d+)$')
    if not batch then return nil end
    local known = batches[batch]
    if known == nil then
      known = call('HGET', L.links, batch)
      batches[batch] = known
    end
    if not known then return nil end
    prefix, prefix_length, prefix_batch, prefix_known = batch .. '~', #batch + 1, batch, known
    return batch, tonumber(number), known == 'w'
  end

  local function batch_of(id)
    return prefix and find(id, prefix, 1, true) == 1 and prefix_batch or L.member_of(id)
  end

  -- The first `count` of these tasks have ended; those with nothing (false) in `details` have just succeeded. Deals with the members among
  -- those that nobody else watches: most tasks of a queue with a large batch. Returns the others, and their details.
  function L.take_members(ids, details, count)
    local others, left, n = {}, {}, 0
    local numbers, batch
    for i = 1, count do
      local id = ids[i]
      if not details[i] and batch_of(id) and prefix_known ~= 'w' then
        if batch ~= prefix_batch then
          batch = prefix_batch
          numbers = L.ended_members(batch).ok
        end
        numbers[#numbers + 1] = tonumber(sub(id, prefix_length + 1))
      else
        n = n + 1
        others[n], left[n] = id, details[i]
      end
    end
    return others, left
  end

  -- This place begins or ends to have something of the batch.
  function L.note_batch(batch, present)
    batches[batch], prefix = nil, nil
    if present then
      call('HSETNX', L.links, batch, '1')
      L.has_links = true
    else
      call('HDEL', L.links, batch)
    end
  end

  -- What `links` has of tasks, as far as this script has read or changed it (false: nothing), and the ids that it has changed.
  local values, changed, changes = {}, {}, 0

  -- Reads at once what is asked for next, but not of members of batches.
  function L.read_links(ids, count)
    if not L.has_links then return end
    local wanted, n = {}, 0
    for i = 1, count do
      local id = ids[i]
      if values[id] == nil and not batch_of(id) then
        n = n + 1
        wanted[n] = id
      end
    end
    if n == 0 then return end
    for first = 1, n, 1000 do
      local last = math.min(first + 999, n)
      local found = call('HMGET', L.links, unpack(wanted, first, last))
      for i = first, last do
        values[wanted[i]] = found[i - first + 1]
      end
    end
  end

  local function link_of(id)
    local value = values[id]
    if value == nil then
      value = L.has_links and call('HGET', L.links, id)
      values[id] = value
    end
    return value
  end

  -- `value` is stored by L.write_links; false: the task has no link any more.
  function L.set_link(id, value)
    changes = changes + 1
    changed[changes] = id
    values[id] = value
    if value then L.has_links = true end
  end

  function L.write_links()
    if changes == 0 then return end
    local set, gone, written = {}, {}, {}
    for i = changes, 1, -1 do
      local id = changed[i]
      if not written[id] then
        written[id] = true
        local value, n = values[id], #set
        if value then
          set[n + 1], set[n + 2] = id, value
        else
          gone[#gone + 1] = id
        end
      end
    end
    changed, changes = {}, 0
    for first = 1, #set, 1000 do
      call('HSET', L.links, unpack(set, first, math.min(first + 999, #set)))
    end
    for first = 1, #gone, 1000 do
      call('HDEL', L.links, unpack(gone, first, math.min(first + 999, #gone)))
    end
  end

  -- Who watches a task: `r`, a run of this place, \0 and its step, when nobody else watches it; else a JSON list. After a `-` they were told that it failed; it is kept, and may be run again.
  local function watchers_of(id)
    local value = link_of(id)
    if not value then return nil, false end
    if string.byte(value) == 45 then return string.sub(value, 2), true end
    return value, false
  end

  -- The run and the step, when nobody else watches the task; else nil.
  local function step_of(watchers)
    if string.byte(watchers) ~= 114 then return nil end
    return string.match(watchers, '^r(%Z*)%z(%Z*)')
  end

  local function step_watcher(run, step)
    return { k = 'r', to = L.place, run = run, step = step }
  end

  local function decode(watchers)
    local run, step = step_of(watchers)
    if run then return { step_watcher(run, step) } end
    local known, list = pcall(cjson.decode, watchers)
    return known and type(list) == 'table' and list or nil
  end

  -- The list of those who watch a task, and whether they were told; nil without any.
  function L.read_watchers(id)
    local watchers, told = watchers_of(id)
    return watchers and decode(watchers), told
  end

  function L.write_watchers(id, list, told)
    L.set_link(id, #list > 0 and (told and '-' or '') .. cjson.encode(list))
  end

  -- Redis keeps a hash of up to 512 short values in a list, and searches it from end to end: no value is short.
  local function list_of(text)
    return '[' .. string.rep(' ', TOO_LONG - #text) .. text .. ']'
  end

  -- The link of the task of a step of this place.
  function L.step_link(run, step)
    local link = 'r' .. run .. '\0' .. step
    return #link < TOO_LONG and link .. string.rep('\0', TOO_LONG - #link) or link
  end

  -- Somebody watches this task of its own accord, also when it is a member.
  local function note_watched(id)
    local batch = L.member_of(id)
    if not batch then return end
    call('HSET', L.links, batch, 'w')
    batches[batch], prefix = 'w', nil
  end

  -- `watcher`: { k, to, … }, see Watcher.
  function L.add_watcher(id, watcher)
    local list = watchers_of(id)
    local run, step = step_of(list or '')
    if run then list = list_of(cjson.encode(step_watcher(run, step))) end
    local text = cjson.encode(watcher)
    if not list then
      list = list_of(text)
    elseif #list > LONG_LIST and watcher.k == 'w' and L.guard(call, 'HSET', L.base .. 'watchers:' .. id, text, '') then
      return
    elseif not string.find(list, text, 1, true) then
      list = string.sub(list, 1, -2) .. ',' .. text .. ']'
    end
    L.set_link(id, list) -- those who were told are told again, as this one was not
    note_watched(id)
  end

  -- A task has ended: tells who watches it. Call it before its hash is deleted. `result` is the result, if any. `gone`: a failed
  -- task that is not kept, so that no rerun can follow.
  function L.ended(id, ok, reason, result, gone)
    if not L.has_links then return end
    local list = values[id]
    local run, step = step_of(list or '')
    if not run then -- a step of a run is no member
      local batch, number, watched = L.member_of(id)
      if batch then
        L.member_ended(batch, number, ok)
        if not watched then return end
      end
      list = watchers_of(id)
    end
    if not run then run, step = step_of(list or '') end
    if not list then return end
    L.set_link(id, not (ok or gone) and '-' .. list)
    if ok and (not result or result == '') then result = try('HGET', L.task_prefix .. id, 'result') end
    if type(result) ~= 'string' then result = '' end
    if run then return L.runs.post_end(run, step, ok, reason, result) end
    for _, watcher in ipairs(decode(list) or {}) do
      local tell = type(watcher) == 'table' and L.tell[watcher.k]
      if tell then L.guard(tell, watcher, id, ok, reason, result) end
    end
    -- What is shorter now had a watcher that was taken away.
    if #list > LONG_LIST / 2 then L.on.tellmore({ kind = 'tellmore', id = id, ok = ok, why = reason, gone = ok or gone }) end
  end

  L.on.tellmore = function(body)
    -- A failure that is still being told must not take the place of a success.
    local key = 'tellmore ' .. (body.ok and '+' or '-') .. body.id
    L.fan_out(L.base .. 'watchers:' .. body.id, key, body, body.gone, function(watcher)
      L.tell.w(watcher, body.id, body.ok, body.why)
    end)
  end

  -- A task has succeeded. Call it before its hash is deleted: without a `result` (nil or '') it is the stored one.
  function L.succeeded(id, result)
    L.ended(id, true, nil, result)
  end

  -- Reads the field of a message with this tag: the last one counts. Returns text, or the number of a varint; nil without it.
  local function field_of(message, wanted)
    local at, size, found = 1, #message, nil
    local function varint()
      local value, factor = 0, 1
      while at <= size do
        local byte = string.byte(message, at)
        at = at + 1
        value = value + byte % 128 * factor
        if byte < 128 then break end
        factor = factor * 128
      end
      return value
    end
    while at <= size do
      local tag = varint()
      local wire, value = tag % 8, nil
      if wire == 0 then
        value = varint()
      elseif wire == 2 then
        local length = varint()
        if tag == wanted then value = string.sub(message, at, at + length - 1) end
        at = at + length
      elseif wire == 1 then
        at = at + 8
      elseif wire == 5 then
        at = at + 4
      else
        return found
      end
      if tag == wanted then found = value end
    end
    return found
  end

  local ERROR_MSG, RETENTION = 58, 96
  -- Seconds; see TECHNICAL_RETENTION.
  local TECHNICAL, TECHNICAL_FIELD = 604801, '\96\129\245\36'

  -- Why a task has failed that a server without links had begun, with no retention, before somebody watched it, and that is gone.
  L.UNSEEN = 'nobody saw its end: it had no retention, and was run by a server that knows no links'
  -- The watchers of such a task have `lost`: how that counts (succeeded or failed), or an empty text.
  local UNSEEN_MARK = '"lost":'

  -- Has a task that somebody watches now kept after its success, when a server runs it that knows no links. Returns whether it
  -- was not kept before.
  function L.retain(id, message)
    if (field_of(message, RETENTION) or 0) > 0 then return false end
    call('HSET', L.task_prefix .. id, 'msg', message .. TECHNICAL_FIELD)
    return true
  end

  local function may_be_unseen(list)
    return list and string.find(list, UNSEEN_MARK, 1, true) ~= nil
  end

  -- Also when the message is written anew by a server that has had it since before somebody watched the task. From the next
  -- attempt on its end is seen.
  function L.retain_again(id)
    local list, told = watchers_of(id)
    local message = list and try('HGET', L.task_prefix .. id, 'msg')
    if type(message) ~= 'string' then return end
    L.retain(id, message)
    local known, watchers = pcall(cjson.decode, may_be_unseen(list) and list or '')
    if not known then return end
    for i = 1, #watchers do
      watchers[i].lost = nil
    end
    L.set_link(id, (told and '-' or '') .. list_of(string.sub(cjson.encode(watchers), 2, -2)))
  end

  -- The watcher of an active task whose message had no retention when its server took it, as far as is known.
  function L.mark_unseen(id, watcher, unkept, missing)
    if unkept or may_be_unseen(watchers_of(id)) then watcher.lost = missing or '' end
  end

  -- Tells the end of a task that nobody has told: of one that a Go server ran, say, or that was deleted. Returns 1 when it did.
  function L.notice(id)
    local key, list, told = L.task_prefix .. id, watchers_of(id)
    local known -- what is known of a member
    if not list then
      local batch, number = L.member_of(id)
      if not batch then return 0 end
      known = L.end_of_member(batch, number)
      told = known ~= nil
    end
    local state, unseen = try('HGET', key, 'state'), may_be_unseen(list)
    if unseen and type(state) == 'string' and state ~= 'active' and state ~= 'completed' then L.retain_again(id) end
    if type(state) ~= 'string' then
      if known then return 0 end
      L.ended(id, false, unseen and L.UNSEEN or 'deleted', nil, true)
    elseif state == 'completed' then
      local technical = field_of(call('HGET', key, 'msg') or '', RETENTION) == TECHNICAL
      if known == 'succeeded' and not technical then return 0 end
      L.succeeded(id)
      if technical then
        call('ZREM', L.completed, id)
        call('DEL', key)
      end
    elseif state == 'archived' and not told then
      local reason = field_of(call('HGET', key, 'msg') or '', ERROR_MSG)
      L.ended(id, false, reason and reason ~= '' and reason or 'archived')
    else
      return 0
    end
    return 1
  end

  function L.is_posted(field)
    return positions[field] ~= nil
  end

  -- Who watches these tasks, packed: id and JSON of each that is linked; of members, once per batch, what their ids begin with.
  function L.links_of(ids)
    local found, single, members = {}, {}, {}
    for i = 1, #ids do
      local id = ids[i]
      local batch = values[id] == nil and batch_of(id)
      if not batch then
        single[#single + 1] = id
      elseif not members[batch] then
        members[batch] = true
        found[#found + 1] = batch .. '~'
        found[#found + 1] = cjson.encode({ { k = 'b', to = L.home_of(batch), batch = batch } })
      end
    end
    L.read_links(single, #single)
    local n = #found
    for i = 1, #single do
      local list = values[single[i]]
      if list then
        found[n + 1], found[n + 2] = single[i], string.byte(list) == 114 and list or watchers_of(single[i])
        n = n + 2
      end
    end
    return #found > 0 and cmsgpack.pack(found) or ''
  end

  local fresh = {}

  -- Also those that became pending in this script are in the list then.
  function L.push_pending()
    if #fresh == 0 then return end
    for first = 1, #fresh, 1000 do
      call('LPUSH', L.pending, unpack(fresh, first, math.min(first + 999, #fresh)))
    end
    fresh = {}
  end

  function L.make_pending(id)
    call('HSET', L.task_prefix .. id, 'state', 'pending', 'pending_since', L.now_nanos)
    fresh[#fresh + 1] = id
  end

  function L.make_scheduled(id, at)
    call('HSET', L.task_prefix .. id, 'state', 'scheduled')
    call('ZADD', L.scheduled, at, id)
  end

  -- Whether an earlier call has created this: `how` is 'i' when its id was made for it, 'm' when its message tells. A task that
  -- links have changed since has more behind its message.
  local function is_present(key, how, message)
    if how == 'i' then return true end
    local stored = how == 'm' and try('HGET', key, 'msg')
    return type(stored) == 'string' and string.sub(stored, 1, #message) == message
  end

  -- The watchers of a new task, added to those who have watched an older one of this id.
  local function add_watchers(id, watchers)
    local texts = {}
    for i = 1, #watchers do
      texts[i] = cjson.encode(watchers[i])
    end
    if not link_of(id) then
      L.set_link(id, list_of(table.concat(texts, ',')))
      return note_watched(id)
    end
    for i = 1, #watchers do
      L.add_watcher(id, watchers[i])
    end
  end

  local function create_link(task)
    local before = link_of(task.id)
    if before and not step_of(before) then
      local run, step = step_of(task.link)
      add_watchers(task.id, { step_watcher(run, step) })
    else
      L.set_link(task.id, task.link)
    end
  end

  -- Finds out at once that none of these tasks exists, if that is so.
  function L.find_absent(tasks)
    for first = 1, #tasks, 1000 do
      local keys = {}
      for i = first, math.min(first + 999, #tasks) do
        keys[#keys + 1] = L.task_prefix .. tasks[i].id
      end
      if call('EXISTS', unpack(keys)) == 0 then
        for i = first, first + #keys - 1 do
          tasks[i].is_absent = true
        end
      end
    end
  end

  -- Creates a task of this place. `task`: id, message; processAt (seconds), uniqueKey with uniqueTtl, watchers (a list), or link (L.step_link),
  -- after (see waits.lua), is_absent (L.find_absent), resent ('i' or 'm': creates nothing when is_present). Returns enqueued, duplicate or conflict, and whether it was
  -- created now.
  function L.create(task)
    local key, lock = L.task_prefix .. task.id, task.uniqueKey
    local exists = not task.is_absent and call('EXISTS', key) == 1
    if exists and is_present(key, task.resent, task.message) then return 'enqueued', false end
    if lock and call('EXISTS', lock) == 1 then return 'duplicate', false end
    if exists then return 'conflict', false end
    if lock then
      call('SET', lock, task.id, 'NX', 'EX', task.uniqueTtl)
      call('HSET', key, 'unique_key', lock)
    end
    if task.link then
      create_link(task)
    elseif task.watchers and #task.watchers > 0 then
      add_watchers(task.id, task.watchers)
    end
    if task.after then
      call('HSET', key, 'msg', task.message)
      L.await(task.id, task.after, task.processAt)
    elseif task.processAt then
      call('HSET', key, 'msg', task.message, 'state', 'scheduled')
      call('ZADD', L.scheduled, task.processAt, task.id)
    else
      call('HSET', key, 'msg', task.message, 'state', 'pending', 'pending_since', L.now_nanos)
      fresh[#fresh + 1] = task.id
    end
    return 'enqueued', true
  end
end
-- Includes shared/parts.lua
-- All else is made when it is first asked for: to make its functions would cost most calls of exchange.lua more than all they do.
do
  local lazy = {}

  local function load()
    for _, list in ipairs({ L, L.on, L.tell, L.due }) do
      setmetatable(list, nil)
    end
    -- Includes shared/waits.lua
    -- Includes shared/runs.lua
-- Includes shared/run-steps.lua
    -- Includes shared/run-tasks.lua
    -- Includes shared/batches.lua
    -- Includes shared/mend.lua
  end

  function lazy.__index(list, name)
    load()
    return list[name]
  end
  for _, list in ipairs({ L, L.on, L.tell, L.due }) do
    setmetatable(list, lazy)
  end
end
