-- Who watches the tasks of this place, and is told of their ends. Part of links.lua, behind membership.lua.
do
  local call, try, type = redis.call, redis.pcall, type
  local byte = string.byte
  local TOO_LONG = 65
  -- A list of watchers that is longer is added to in a hash, `watchers:<id>`.
  local LONG_LIST = 16384
  -- What the link of a step, and the id of a member of a batch, begin with.
  local STEP, BATCH = byte('r'), byte('b')

  -- What `links` has of tasks, as far as this script has read or changed it (false: nothing), and the ids that it has changed.
  local values, changed, changes = {}, {}, 0

  -- Reads at once what is asked for next, but not of members of batches.
  function L.read_links(ids, count)
    if not L.has_links then return end
    local wanted, n = {}, 0
    for i = 1, count do
      local id = ids[i]
      if values[id] == nil and not (byte(id) == BATCH and L.batch_of(id)) then
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

  -- One that was changed twice is written twice, as it is now.
  function L.write_links()
    if changes == 0 then return end
    local set, gone, n, m = {}, {}, 0, 0
    for i = 1, changes do
      local id = changed[i]
      local value = values[id]
      if value then
        set[n + 1], set[n + 2] = id, value
        n = n + 2
      else
        m = m + 1
        gone[m] = id
      end
    end
    changed, changes = {}, 0
    for first = 1, n, 1000 do
      call('HSET', L.links, unpack(set, first, math.min(first + 999, n)))
    end
    for first = 1, m, 1000 do
      call('HDEL', L.links, unpack(gone, first, math.min(first + 999, m)))
    end
  end

  -- Who watches a task: `r`, a run of this place, \0, its step, \0 and R.hint, when nobody else watches it; else a JSON list. Behind a `-`
  -- are those who know that it has failed; it is kept, and may be run again.
  function L.watchers_of(id)
    local value = link_of(id)
    if not value then return nil, false end
    if string.byte(value) == 45 then return string.sub(value, 2), true end
    return value, false
  end

  -- The run and the step, when nobody else watches the task; else nil.
  local function step_of(watchers)
    if byte(watchers) ~= STEP then return nil end
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
    local watchers, told = L.watchers_of(id)
    return watchers and decode(watchers), told
  end

  function L.write_watchers(id, list, told)
    L.set_link(id, #list > 0 and (told and '-' or '') .. cjson.encode(list))
  end

  -- Redis keeps a hash of up to 512 short values in a list, and searches it from end to end: no value is short.
  function L.list_of(text)
    return '[' .. string.rep(' ', TOO_LONG - #text) .. text .. ']'
  end

  -- The link of the task of a step of this place. `hint`: R.hint.
  function L.step_link(run, step, hint)
    local link = 'r' .. run .. '\0' .. step .. '\0' .. hint
    return #link < TOO_LONG and link .. string.rep('\0', TOO_LONG - #link) or link
  end

  -- `watcher`: { k, to, … }, see Watcher.
  function L.add_watcher(id, watcher)
    local list = L.watchers_of(id)
    local run, step = step_of(list or '')
    if run then list = L.list_of(cjson.encode(step_watcher(run, step))) end
    local text = cjson.encode(watcher)
    if not list then
      list = L.list_of(text)
    elseif #list > LONG_LIST and watcher.k == 'w' and L.guard(call, 'HSET', L.base .. 'watchers:' .. id, text, '') then
      return
    elseif not string.find(list, text, 1, true) then
      list = string.sub(list, 1, -2) .. ',' .. text .. ']'
    end
    L.set_link(id, list) -- those who were told are told again, as this one was not
    L.note_watched(id)
  end

  local function result_of(id, result)
    if result and result ~= '' then return result end
    local stored = try('HGET', L.task_prefix .. id, 'result')
    return type(stored) == 'string' and stored or ''
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
      list = L.watchers_of(id)
      if not list then return end
      run, step = step_of(list)
    end
    L.set_link(id, not (ok or gone) and '-' .. list)
    result = ok and result_of(id, result) or ''
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
    local link = values[id]
    local run, step, hint
    if link then
      run, step, hint = string.match(link, '^r(%Z*)%z(%Z*)%z(.*)$')
    end
    if not run then return L.ended(id, true, nil, result) end
    L.set_link(id, false)
    L.runs.post_success(run, step, hint, id, result_of(id, result))
  end

  -- The watchers of a new task, added to those who have watched an older one of this id.
  function L.add_watchers(id, watchers)
    local texts = {}
    for i = 1, #watchers do
      texts[i] = cjson.encode(watchers[i])
    end
    if not link_of(id) then
      L.set_link(id, L.list_of(table.concat(texts, ',')))
      return L.note_watched(id)
    end
    for i = 1, #watchers do
      L.add_watcher(id, watchers[i])
    end
  end

  -- The new task of a step, with a link.
  function L.add_link(task)
    local before = link_of(task.id)
    if before and not step_of(before) then
      local run, step = step_of(task.link)
      L.add_watchers(task.id, { step_watcher(run, step) })
    else
      L.set_link(task.id, task.link)
    end
  end

  -- Who watches these tasks, packed: their number; a link or JSON of each, in order ('' of one that nobody watches, or that is a member);
  -- then, once per batch, what the ids of its members begin with, and JSON. Empty when there is nothing.
  function L.links_of(ids)
    local count, any = #ids, false
    L.read_links(ids, count)
    local found, n, members = { count }, count + 1, {}
    for i = 1, count do
      local id = ids[i]
      local link = values[id]
      if link then
        any = true
        found[i + 1] = byte(link) == STEP and link or L.watchers_of(id)
      else
        found[i + 1] = ''
        local batch = link == nil and L.batch_of(id)
        if batch and not members[batch] then
          members[batch], any = true, true
          found[n + 1], found[n + 2] = batch .. '~', cjson.encode({ { k = 'b', to = L.home_of(batch), batch = batch } })
          n = n + 2
        end
      end
    end
    return any and cmsgpack.pack(found) or ''
  end
end
