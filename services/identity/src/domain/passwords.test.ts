import { expect, test } from 'vitest'
import { brokenByName, brokenByPassword, randomPassword } from './passwords.js'

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
