import { hash } from '@node-rs/argon2'
import { expect, test } from 'vitest'
import { brokenByName, brokenByPassword, isWeaker, randomPassword } from './passwords.js'

const easy = {
  minPasswordLength: 5,
  requireMixedCase: false,
  requireNumberChar: false,
  requireSpecialChar: false,
}
const hard = {
  minPasswordLength: 8,
  requireMixedCase: true,
  requireNumberChar: true,
  requireSpecialChar: true,
}

test.each([
  ['a name of four is long enough', 'abcd', undefined, easy, undefined],
  ['a name of three is not', 'abc', undefined, easy, 'username'],
  ['a name of more than a hundred is refused', 'a'.repeat(101), undefined, easy, 'username'],
  ['a password of five is long enough', undefined, 'abcde', easy, undefined],
  ['a password of four is not', undefined, 'abcd', easy, 'password'],
  ['a password of more than a hundred is refused', undefined, 'a'.repeat(101), easy, 'password'],
  ['a policy asks for more characters', undefined, 'aB1-567', hard, 'password'],
  ['a policy asks for both cases', undefined, 'ab1-5678', hard, 'password'],
  ['a policy asks for a digit', undefined, 'aB--abcd', hard, 'password'],
  ['a policy asks for something that is neither letter nor digit', undefined, 'aB15678x', hard, 'password'],
  ['what has it all is accepted', undefined, 'aB1-5678', hard, undefined],
  ['characters are counted, not bytes', undefined, 'éééé', easy, 'password'],
] as const)('%s', (_rule, username, password, rules, field) => {
  const broken = {
    username: username !== undefined && brokenByName(username),
    password: password !== undefined && brokenByPassword(password, rules),
  }
  expect(Object.entries(broken).find(([, reason]) => reason)?.[0]).toBe(field)
})

test('random passwords keep the rules, and no tool takes them for an option', () => {
  for (const rules of [easy, hard, { ...hard, minPasswordLength: 100 }])
    for (let i = 0; i < 200; i++) {
      const password = randomPassword(rules)
      expect(brokenByPassword(password, rules)).toBeUndefined()
      expect(password).not.toMatch(/^-/)
    }
  expect(() => randomPassword({ ...easy, minPasswordLength: 101 })).toThrow('at least 101')
})

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
