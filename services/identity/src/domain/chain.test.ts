import { beforeAll, expect, test } from 'vitest'
import { authority, certify, type Holder } from '../../test/certificates.js'
import { chainOf, fingerprintOf, hasBegun, isWithin } from './chain.js'
import { pathLengthOf } from './path-length.js'

const hour = 3_600_000
const now = new Date()
const past = new Date(now.getTime() - hour)
const longPast = new Date(now.getTime() - 2 * hour)
const future = new Date(now.getTime() + hour)

let root: Holder
let signer: Holder
let leaf: Holder
beforeAll(async () => {
  root = await authority('root')
  signer = await authority('signer', root)
  leaf = await certify({ name: 'leaf', issuer: signer })
})

const lengthOf = (presented: readonly Holder[], trusted: readonly Holder[]): number | undefined =>
  chainOf(
    presented.map(({ certificate }) => certificate),
    trusted.map(({ certificate }) => certificate),
    now,
  )?.length

test('a leaf whose issuer is trusted has a chain, though the issuer is no root', () => {
  expect(lengthOf([leaf], [signer])).toBe(2)
})
test('what lies between comes from the client', () => {
  expect(lengthOf([leaf, signer], [root])).toBe(3)
  expect(lengthOf([leaf], [root])).toBeUndefined()
})
test('the order of what the client sends does not matter, beyond the leaf', async () => {
  const lower = await authority('lower', signer)
  const client = await certify({ name: 'client', issuer: lower })
  expect(lengthOf([client, signer, lower], [root])).toBe(4)
  expect(lengthOf([lower, client, signer], [root])).toBe(3)
})
test('nobody presented, nobody proved', () => {
  expect(lengthOf([], [root])).toBeUndefined()
})
test('a foreign authority of the same name does not count', async () => {
  const foreign = await authority('signer')
  const stranger = await certify({ name: 'leaf', issuer: foreign })
  expect(lengthOf([stranger, foreign], [root, signer])).toBeUndefined()
})
test('a certificate that signed itself proves nothing', async () => {
  expect(lengthOf([await certify({ name: 'self' })], [root, signer])).toBeUndefined()
})
test('who is no authority cannot vouch', async () => {
  const client = await certify({ name: 'client', issuer: leaf })
  expect(lengthOf([client, leaf, signer], [root])).toBeUndefined()
})
test('an authority vouches through as many others as it may, and no more', async () => {
  const strict = await authority('strict', undefined, { pathLength: 0 })
  const below = await authority('below', strict)
  expect(lengthOf([await certify({ name: 'direct', issuer: strict })], [strict])).toBe(2)
  expect(lengthOf([await certify({ name: 'indirect', issuer: below }), below], [strict])).toBeUndefined()
})
test('an expired leaf has a chain: the auth policy decides about it', async () => {
  const expired = await certify({ name: 'old', issuer: signer, from: longPast, to: past })
  expect(lengthOf([expired], [signer])).toBe(2)
  expect(isWithin(expired.certificate, now)).toBe(false)
  expect(hasBegun(expired.certificate, now)).toBe(true)
})
test('a leaf that is not valid yet has not begun', async () => {
  const early = await certify({ name: 'early', issuer: signer, from: future, to: new Date(+future + hour) })
  expect(hasBegun(early.certificate, now)).toBe(false)
})
test('an authority that has expired vouches for nobody', async () => {
  const expired = await authority('old signer', root, { from: longPast, to: past })
  expect(lengthOf([await certify({ name: 'client', issuer: expired }), expired], [root])).toBeUndefined()
})
test('a chain that is too long is none', async () => {
  const chain = [root]
  for (let depth = 0; depth < 8; depth++) chain.unshift(await authority(`level ${depth}`, chain[0]))
  const client = await certify({ name: 'client', ...(chain[0] && { issuer: chain[0] }) })
  expect(lengthOf([client, ...chain], [root])).toBeUndefined()
})
test('a path length is read from the certificate', async () => {
  const limited = await authority('limited', undefined, { pathLength: 3 })
  expect(pathLengthOf(limited.certificate.raw)).toBe(3)
  expect(pathLengthOf(root.certificate.raw)).toBeUndefined()
  expect(pathLengthOf(leaf.certificate.raw)).toBeUndefined()
})
test('a fingerprint is lower-case hex without colons', () => {
  expect(fingerprintOf(leaf.certificate)).toMatch(/^[0-9a-f]{40}$/)
})
