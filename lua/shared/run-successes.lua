-- Steps that succeed: part of links.lua, behind run-steps.lua. Most ends are the first success of a step of this place, whose link tells
-- which steps come after it. Then all that changes is known from few fields of the run, and nothing of it is kept in tables. Whatever
-- else holds is left to run-steps.lua.
do
  local call, try = redis.call, redis.pcall
  local byte, find, gmatch, match, sub = string.byte, string.find, string.gmatch, string.match, string.sub
  local pack, unpack_bytes = struct.pack, struct.unpack
  local R = L.runs
  local READY, WAITING = byte('r'), byte('w')

  -- What tasks have told their runs, by run, four values each: step, hint (R.hint), id of the task, result.
  local successes, successful_runs = {}, {}

  -- What STEP of runs.lua begins with: succeeded now, without and with a result, ready; and its last part: ready now, waiting for none.
  local succeeded, with_result, ready, since

  local function prepare()
    if succeeded then return end
    local now = pack('<d', L.millis)
    succeeded, with_result = 's' .. now, 'S' .. now
    ready, since = 'r' .. string.rep('\0', 8), now .. string.rep('\0', 8)
  end

  function R.post_success(run, step, hint, id, result)
    local list = successes[run]
    if not list then
      successes[run], successful_runs[#successful_runs + 1] = { step, hint, id, result }, run
    else
      local n = #list
      list[n + 1], list[n + 2], list[n + 3], list[n + 4] = step, hint, id, result
    end
  end

  -- Adds to `fields` those of the steps after the ended ones, and returns their names, how many of the ended ones are before each, and
  -- how many steps the run had when their links were written; nil when that differs.
  local function add_following(fields, list)
    local hints, names, counts, n, total = {}, {}, {}, #fields, nil
    for i = 2, #list, 4 do
      local hint = list[i]
      hints[hint] = (hints[hint] or 0) + 1
    end
    for hint, times in pairs(hints) do
      local start, before = find(hint, '\0', 1, true), total
      total = start and sub(hint, 1, start - 1)
      if before and total ~= before then return nil end
      for name in gmatch(sub(hint, start or 1), '%Z+') do
        if not counts[name] then
          names[#names + 1] = name
          fields[n + 1], fields[n + 2], fields[n + 3] = 's:' .. name, 'v:' .. name, 'd:' .. name
          n = n + 3
        end
        counts[name] = (counts[name] or 0) + times
      end
    end
    return names, counts, tonumber(total)
  end

  -- Returns false, and has written nothing, when this is not all there is to it.
  local function apply(id, list)
    if R.is_read(id) then return false end
    local key, fields, ended = L.base .. 'run:' .. id, { 'c', nil, nil, nil }, #list / 4
    if ended > 500 then return false end
    for i = 1, ended do
      fields[i + 1] = 's:' .. list[4 * i - 3]
    end
    local names, counts, total = add_following(fields, list)
    local values = names and #fields < 2000 and try('HMGET', key, unpack(fields))
    if not values or values.err then return false end
    local c = values[1]
    if not R.are_counts(c) then return false end
    local state, open, begun, all = unpack_bytes('<c1I4I4I4', c)
    if state ~= 'r' or all ~= total then return false end

    local set, n = { nil, nil, nil, nil, nil, nil, nil, nil }, 0
    for i = 1, ended do
      local step, result = values[i + 1], list[4 * i]
      if not R.is_step(step) or byte(step) ~= READY then return false end
      set[n + 1], set[n + 2] = 'v:' .. list[4 * i - 3], result
      set[n + 3], set[n + 4] = fields[i + 1], (result == '' and succeeded or with_result) .. sub(step, 10)
      n = n + 4
    end
    open, begun = open - ended, begun - ended

    local begins, at = nil, ended + 2
    for i = 1, #names do
      local step, message, graph = values[at], values[at + 1], values[at + 2]
      if not R.is_step(step) or byte(step) ~= WAITING then return false end
      local waits, bad = unpack_bytes('<I4I4', step, 20)
      waits = waits - counts[names[i]]
      set[n + 1] = fields[at]
      if waits > 0 then
        set[n + 2] = sub(step, 1, 19) .. pack('<I4I4', waits, bad)
      elseif waits < 0 or bad > 0 or not message or not R.is_plain(step) then
        return false
      else
        set[n + 2] = ready .. sub(step, 10, 11) .. since
        begins, begun = begins or {}, begun + 1
        begins[#begins + 1], begins[#begins + 2], begins[#begins + 3] = names[i], message, R.hint(all, graph)
      end
      n, at = n + 2, at + 3
    end

    if begun > 0 then
      set[n + 1], set[n + 2] = 'c', pack('<c1I4I4', state, open, begun) .. sub(c, 10)
      call('HSET', key, unpack(set))
    else
      R.write_end(id, key, c, open, begun, set)
    end
    if begins then
      local prefix = sub(list[3], 1, #list[3] - #list[1])
      for i = 1, #begins, 3 do
        local name = begins[i]
        local task = prefix .. (find(name, '/', 1, true) and string.gsub(name, '/', '~') or name)
        R.begin_plain(id, name, task, begins[i + 1], begins[i + 2])
      end
    end
    return true
  end

  function R.apply_successes()
    if not successful_runs[1] then return end
    prepare()
    local ids = successful_runs
    successful_runs = {}
    for i = 1, #ids do
      local id = ids[i]
      local list = successes[id]
      successes[id] = nil
      if not L.guard(apply, id, list) then
        for at = 1, #list, 4 do
          R.post_end(id, list[at], true, nil, list[at + 3])
        end
      end
    end
  end
end
