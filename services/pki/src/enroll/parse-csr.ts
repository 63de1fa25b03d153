import { Fault } from '@overlay/rpc'
import { type Csr, CsrError, readCsr } from '../domain/csr.js'

/** Parses and verifies a certificate request. `detail` replaces the exact reason of a refusal. */
export async function parseCsr(pem: string, detail?: string): Promise<Csr> {
  try {
    return await readCsr(pem)
  } catch (err) {
    if (!(err instanceof CsrError)) throw err
    throw new Fault('COULD_NOT_PROCESS_CSR', detail ?? err.message, err)
  }
}
