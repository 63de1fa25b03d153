import { expect, test } from 'vitest'
import { admin, jsonOf, newName } from './network.js'
import { postureNetwork } from './posture.js'

const { policy, check } = await postureNetwork()

test('members follow the type of a check, which never changes', async () => {
  const id = await check({ roleAttributes: ['#b', 'a'] })
  const shown = { typeId: 'DOMAIN', domains: ['a.example'], version: 1, roleAttributes: ['#b', 'a'] }
  const before = await policy.get('posture-checks', id)
  expect(before).toMatchObject(shown)
  expect(Object.keys(before)).not.toEqual(expect.arrayContaining(['macAddresses']))
  await policy.update('posture-checks', id, { typeId: 'MAC', macAddresses: ['aa'], name: newName() })
  const after = await policy.get('posture-checks', id)
  expect(after).toEqual({ ...before, name: after.name, updatedAt: after.updatedAt })
  expect(after.name).not.toBe(before.name)
})

test('systems, addresses and processes are shown in their order and form', async () => {
  const shown = async (body: object) => policy.get('posture-checks', await check(body))
  const systems = [
    { type: 'Windows', versions: ['1.0.0'] },
    { type: 'Linux', versions: ['>=5.0.0 <6.0.0'] },
    { type: 'Windows', versions: [] },
  ]
  expect(await shown({ typeId: 'OS', operatingSystems: systems })).toMatchObject({
    operatingSystems: [
      { type: 'Linux', versions: ['>=5.0.0 <6.0.0'] },
      { type: 'Windows', versions: null },
    ],
  })
  expect(await shown({ typeId: 'MAC', macAddresses: ['AA-bb:CC'] })).toMatchObject({
    macAddresses: ['aabbcc'],
    roleAttributes: [],
  })
  const process = { osType: 'Linux', path: '/a' }
  expect((await shown({ typeId: 'PROCESS', process })).process).toEqual({ ...process, hashes: null })
  const one = { ...process, hashes: ['AB:cd'], signerFingerprint: 'E:F' }
  expect((await shown({ typeId: 'PROCESS', process: one })).process).toEqual({
    ...process,
    hashes: ['ab:cd'],
    signerFingerprint: 'e:f',
  })
  const processes = [
    { ...process, path: '/b', hashes: ['AB'] },
    process,
    { ...process, path: '/b', hashes: [' Ab:12 '], signerFingerprints: ['CD', 'e:F'] },
  ]
  expect(await shown({ typeId: 'PROCESS_MULTI', semantic: 'AnyOf', processes })).toMatchObject({
    semantic: 'AnyOf',
    processes: [
      { ...process, hashes: [], signerFingerprints: [] },
      { ...process, path: '/b', hashes: [' Ab:12 '], signerFingerprints: ['CD', 'e:F'] },
    ],
  })
  const mfa = await shown({ typeId: 'MFA', timeoutSeconds: 0, promptOnWake: true })
  expect(mfa).toMatchObject({ timeoutSeconds: -1, promptOnWake: true })
  expect(mfa).not.toHaveProperty('promptOnUnlock')
})

test('a patch changes one member and keeps its siblings', async () => {
  const id = await check({
    typeId: 'PROCESS',
    process: { osType: 'Linux', path: '/a', hashes: ['ab'], signerFingerprint: 'cd' },
  })
  const json = jsonOf({ typeId: 'PROCESS', process: { path: '/b' } })
  const ref = { kind: 'posture-checks', id }
  await policy.entities.update({ ref, json, mask: ['typeId', 'process.path'] }, admin)
  expect((await policy.get('posture-checks', id)).process).toEqual({
    osType: 'Linux',
    path: '/b',
    hashes: ['ab'],
    signerFingerprint: 'cd',
  })
})

test('an invalid range of versions is bad input', async () => {
  const operatingSystems = [{ type: 'Linux', versions: ['1.0.0', 'new'] }]
  await expect(check({ typeId: 'OS', operatingSystems })).rejects.toMatchObject({
    code: 'COULD_NOT_VALIDATE',
    detail: { field: 'operatingSystems.0.versions.1', value: 'new' },
  })
})
