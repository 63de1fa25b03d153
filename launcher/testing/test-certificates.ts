import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openProcessCertificates, type ProcessCertificates } from '../src/home/process-certificates.js'

export interface TestCertificates extends ProcessCertificates {
  /** Sets the time of certificates that are issued from now on, and renews those that are due then. */
  at(time: Date): Promise<void>
}

/**
 * Certificates of an authority of their own, in a directory that other accounts may enter.
 * @param time of the authority and the first certificates; the present if absent
 */
export async function testCertificates(time?: Date): Promise<TestCertificates> {
  const tls = await mkdtemp(join(tmpdir(), 'overlay-test-tls-'))
  await chmod(tls, 0o711)
  let at = time
  const certificates = await openProcessCertificates({
    directory: tls,
    warn: (line) => {
      throw new Error(line)
    },
    now: () => at ?? new Date(),
  })
  return {
    ...certificates,
    async at(time) {
      at = time
      await certificates.renew()
    },
    async [Symbol.asyncDispose]() {
      await certificates[Symbol.asyncDispose]()
      await rm(tls, { recursive: true })
    },
  }
}
