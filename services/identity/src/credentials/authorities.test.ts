import { expect, test } from 'vitest'
import { authority } from '../../test/certificates.js'
import { openTrust } from './authorities.js'

test('concurrent callers share one request to pki, and an old answer is replaced', async () => {
  const { certificate } = await authority('root')
  let asked = 0
  let now = 0
  const pki = {
    async getTrustBundle() {
      asked++
      return { pems: [certificate.toString()], trustDomain: '', keyId: '' }
    },
  }
  const trust = openTrust(pki, 1000, () => now)
  const [first, second] = await Promise.all([trust.certificates(), trust.certificates()])
  expect([first?.length, second, asked]).toEqual([1, first, 1])
  now = 999
  await trust.certificates()
  expect(asked).toBe(1)
  await trust.certificates(500)
  expect(asked).toBe(2)
  now = 1999
  await trust.certificates()
  expect(asked).toBe(3)
})

test('while pki does not answer, an old answer is not used', async () => {
  const pki = {
    async getTrustBundle(): Promise<never> {
      throw new Error('away')
    },
  }
  const trust = openTrust(pki, 1000)
  await expect(trust.certificates()).rejects.toThrow('away')
})
