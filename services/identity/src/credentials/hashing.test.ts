import { hash } from '@node-rs/argon2'
import { expect, test } from 'vitest'
import { noRules, soundPassword } from '../domain/passwords.js'
import { openHashing } from './hashing.js'

const cheap = { memoryKib: 3072, passes: 1, lanes: 1, running: 1, waiting: 1 }
const turn = { source: 'here', name: 'somebody' }

test('a hash contains its parameters, and matches its password only', async () => {
  const { hash, inTurn } = openHashing({ ...cheap, passes: 2 })
  const stored = await hash(soundPassword('right-one', noRules), turn)
  expect(stored).toMatch(/^\$argon2id\$v=19\$m=3072,t=2,p=1\$/)
  expect(await inTurn(turn, ({ compare }) => compare(stored, 'right-one'))).toBe(true)
  expect(await inTurn(turn, ({ compare }) => compare(stored, 'right-onf'))).toBe(false)
})

test('a hash of other parameters is compared by its own', async () => {
  const stored = await hash('right-one', { memoryCost: 4096, timeCost: 1, parallelism: 2 })
  expect(await openHashing(cheap).inTurn(turn, ({ compare }) => compare(stored, 'right-one'))).toBe(true)
})

test('where nothing is stored the same work is done, and nothing matches', async () => {
  expect(await openHashing(cheap).inTurn(turn, ({ compare }) => compare(null, ''))).toBe(false)
})

test('what does not fit into the queue is refused at once', async () => {
  const { hash } = openHashing(cheap)
  const password = soundPassword('right-one', noRules)
  const results = await Promise.allSettled([1, 2, 3].map(() => hash(password, turn)))
  expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected'])
  expect(results[2]).toMatchObject({ reason: { code: 'SERVER_TOO_MANY_REQUESTS' } })
})
