import { hash } from '@node-rs/argon2'
import { expect, test } from 'vitest'
import { isWeaker } from './hash-strength.js'

const cost = { memoryKib: 4096, passes: 2 }
const like = { memoryCost: 4096, timeCost: 2, parallelism: 1 }

test.each([
  ['the same cost', {}, false],
  ['less memory', { memoryCost: 3072 }, true],
  ['fewer passes', { timeCost: 1 }, true],
  ['other lanes', { parallelism: 4 }, false],
  ['a short salt', { salt: Buffer.alloc(10, 1) }, true],
  ['another algorithm of the same cost', { algorithm: 1 }, true],
  ['more memory, fewer passes', { memoryCost: 8192, timeCost: 1 }, false],
  ['less memory, more passes', { memoryCost: 3072, timeCost: 3 }, false],
  ['more memory and a short salt', { memoryCost: 8192, salt: Buffer.alloc(10, 1) }, false],
  [
    'the cost of imported hashes',
    { memoryCost: 3072, timeCost: 1, parallelism: 4, salt: Buffer.alloc(10, 1) },
    true,
  ],
])('%s: a new hash replaces the stored one only if it is stronger', async (_what, options, weaker) => {
  expect(isWeaker(await hash('right-one', { ...like, ...options }), cost)).toBe(weaker)
})

test('text of another form is never replaced', () => {
  expect(isWeaker('$2b$12$abc', cost)).toBe(false)
})
