import type { Check } from '../src/domain/posture/posture-check.js'

/** A posture check that asks for nothing yet: tests say its type and members. */
export const sampleCheck: Check = {
  id: 'k1',
  name: 'check',
  typeId: '',
  roleAttributes: null,
  operatingSystems: null,
  domains: null,
  macAddresses: null,
  'process.osType': null,
  'process.path': null,
  'process.hashes': null,
  'process.signerFingerprint': null,
  semantic: null,
  processes: null,
  timeoutSeconds: null,
  promptOnWake: null,
  promptOnUnlock: null,
  ignoreLegacyEndpoints: null,
  tags: {},
  isSystem: false,
  createdAt: '2026-01-01T00:00:00.000Z',
  updatedAt: '2026-01-01T00:00:00.000Z',
}
