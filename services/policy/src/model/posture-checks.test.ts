import { ModelPostureCheck } from '@overlay/channel'
import { expect, test } from 'vitest'
import { sampleCheck } from '../../testing/sample-check.js'
import type { Check } from '../domain/posture/posture-check.js'
import { modelCheckOf } from './posture-checks.js'

const formOf = (check: Partial<Check>): unknown => {
  const { id, name, ...form } = modelCheckOf('id', 'name', { ...sampleCheck, ...check })
  expect([id, name]).toEqual(['id', 'name'])
  expect(ModelPostureCheck.decode(ModelPostureCheck.encode({ id, name, ...form }).finish())).toMatchObject(
    form,
  )
  return form
}

test('addresses, hashes and fingerprints have the form of reports', () => {
  expect(formOf({ typeId: 'MAC', macAddresses: ['00:1A-2b', 'zz'] })).toEqual({
    typeId: 'MAC',
    mac: { macAddresses: ['001a2b'] },
  })
  const [path, osType] = ['C:\\Program.exe', 'Windows'] as const
  expect(
    formOf({
      typeId: 'PROCESS',
      'process.path': path,
      'process.osType': osType,
      'process.hashes': ['AB:CD'],
      'process.signerFingerprint': 'EF 01',
    }),
  ).toEqual({ typeId: 'PROCESS', process: { osType, path, hashes: ['abcd'], fingerprints: ['ef01'] } })
  expect(
    formOf({ typeId: 'PROCESS_MULTI', semantic: 'AnyOf', processes: [{ osType, path, hashes: ['AB'] }] }),
  ).toEqual({
    typeId: 'PROCESS_MULTI',
    processMulti: { semantic: 'AnyOf', processes: [{ osType, path, hashes: ['ab'], fingerprints: [] }] },
  })
})

test('a domain passes in any case that endpoints report', () => {
  expect(formOf({ typeId: 'DOMAIN', domains: ['Corp.example'] })).toEqual({
    typeId: 'DOMAIN',
    domains: { domains: ['Corp.example', 'corp.example', 'CORP.EXAMPLE'] },
  })
})

test('any version passes where no range is given, and a range that cannot be read lets none pass', () => {
  const operatingSystems = [
    { type: 'Linux', versions: null },
    { type: 'Windows', versions: ['>=10.0.0', 'ten'] },
    { type: 'iOS', versions: ['ten'] },
  ]
  expect(formOf({ typeId: 'OS', operatingSystems })).toEqual({
    typeId: 'OS',
    osList: {
      osList: [
        { osType: 'Linux', osVersions: ['>=0.0.0'] },
        { osType: 'Windows', osVersions: ['>=10.0.0'] },
        { osType: 'iOS', osVersions: [] },
      ],
    },
  })
})

test.each([[null], [0], [-1]])('a second factor with the time-out %s does not lapse', (timeoutSeconds) => {
  expect(formOf({ typeId: 'MFA', timeoutSeconds, promptOnWake: true })).toMatchObject({
    mfa: { timeoutSeconds: -1n, promptOnWake: true, promptOnUnlock: false },
  })
})

test('no endpoint passes a check that cannot be read', () => {
  const impossible = { typeId: 'OS', osList: { osList: [] } }
  expect(formOf({ typeId: 'unknown' })).toEqual(impossible)
  expect(modelCheckOf('id', '', undefined)).toMatchObject(impossible)
})
