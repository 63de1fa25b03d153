import { expect, test } from 'vitest'
import { openExecutedCommands } from './executed-commands.js'
import type { RouterCommand } from './router-command.js'

const command = (id: string): RouterCommand => ({
  ...{ id, from: 'f', routerId: 'r1', timeoutMs: 5000 },
  message: { type: 1, headers: [], body: '' },
})

function start(options: Parameters<typeof openExecutedCommands>[0] = {}) {
  const runs: string[] = []
  const executed = openExecutedCommands(options)
  /** The body of the answer, or why there is none. */
  const bodyOf = async (id: string, body = `of ${id}`): Promise<string> => {
    const { answer } = await executed.once(command(id), async () => {
      runs.push(id)
      return { answer: { reply: { type: 2, headers: [], body } } }
    })
    if (!answer) throw new Error('no answer')
    return 'failure' in answer ? answer.failure : (answer.reply?.body ?? '')
  }
  return { executed, runs, bodyOf }
}

test('a command that arrives again, also meanwhile, is not executed and has the same answer', async () => {
  const { runs, bodyOf } = start()
  expect(await Promise.all([bodyOf('a'), bodyOf('a')])).toEqual(['of a', 'of a'])
  expect(await bodyOf('a')).toBe('of a')
  expect(runs).toEqual(['a'])
})

test('an answer is kept while its sender waits for it', async () => {
  let now = 0
  const { executed, runs, bodyOf } = start({ now: () => now })
  await bodyOf('a')
  now = 6000
  executed.dropOld()
  expect(await bodyOf('a')).toBe('of a')
  now = 6001
  executed.dropOld()
  expect(await bodyOf('a')).toBe('the answer is no longer kept')
  expect(runs).toEqual(['a'])
})

test('the oldest answers give way to new ones', async () => {
  const { runs, bodyOf } = start({ maxBytes: 1500 })
  for (const id of ['a', 'b', 'c']) await bodyOf(id, id.repeat(600))
  expect(await Promise.all(['a', 'b', 'c'].map((id) => bodyOf(id)))).toEqual([
    'the answer is no longer kept',
    'b'.repeat(600),
    'c'.repeat(600),
  ])
  expect(runs).toEqual(['a', 'b', 'c'])
})
