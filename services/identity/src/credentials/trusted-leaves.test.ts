import type { X509Certificate } from 'node:crypto'
import { ownContext } from '@overlay/rpc'
import { expect, test } from 'vitest'
import { authority, certify, type Holder } from '../../test/certificates.js'
import { openChains } from './chains.js'
import { openTrustedLeaves } from './trusted-leaves.js'

const hours = (count: number): Date => new Date(Date.now() + count * 3_600_000)
const raw = ({ certificate }: Holder): Buffer => certificate.raw

async function network() {
  const root = await authority('root')
  const between = await certify({ name: 'between', issuer: root, ca: true, to: hours(2) })
  const leaf = await certify({ name: 'leaf', issuer: between, to: hours(9) })
  let trusted: readonly X509Certificate[] = [root.certificate]
  const trust = { certificates: async () => trusted, reload: () => undefined }
  const context = ownContext(new AbortController().signal)
  const leaves = openTrustedLeaves(trust, openChains())
  return {
    root,
    between,
    leaf,
    find: async (presented: readonly Buffer[], now: Date) =>
      (await leaves.find(presented, context, now)).leaf,
    trustOnly(...holders: readonly Holder[]) {
      trusted = holders.map(({ certificate }) => certificate)
    },
  }
}

test('a leaf is verified once, and again when the trusted authorities are others', async () => {
  const { find, leaf, between, root, trustOnly } = await network()
  const presented = [raw(leaf), raw(between)]
  const first = await find(presented, new Date())
  expect(first).toMatchObject({ subject: 'CN=leaf' })
  expect(await find(presented, new Date())).toBe(first)
  trustOnly(await authority('other'))
  expect(await find(presented, new Date())).toBeUndefined()
  trustOnly(root)
  expect(await find(presented, new Date())).toEqual(first)
})

test('a leaf that was verified is not trusted beyond the dates of the certificates above it', async () => {
  const { find, leaf, between } = await network()
  const presented = [raw(leaf), raw(between)]
  expect(await find(presented, new Date())).toBeDefined()
  expect(await find(presented, hours(3))).toBeUndefined()
  expect(await find(presented, new Date())).toBeDefined()
})

test('a leaf that was verified with its chain is not trusted without it', async () => {
  const { find, leaf, between } = await network()
  expect(await find([raw(leaf), raw(between)], new Date())).toBeDefined()
  expect(await find([raw(leaf)], new Date())).toBeUndefined()
})
