import { X509Certificate } from 'node:crypto'
import { hasIssued } from '@overlay/x509'
import { buildChain } from '../domain/build-chain.js'
import type { Key } from '../store/keys.js'
import { KeyRefused } from './key-refused.js'

/** The certificates between one and its root, the lowest first, and the root, if the chain has it. */
export function pathOf(
  pem: string,
  authorities: readonly string[],
  certified: readonly Key[],
): { readonly between: readonly string[]; readonly root: string | undefined } {
  const roots = certified.filter(({ role }) => role === 'root').map((key) => new X509Certificate(key.pem))
  const others = authorities.filter((one) => one !== pem).map((one) => new X509Certificate(one))
  const { chain, last, isComplete } = buildChain(new X509Certificate(pem), others, {
    isComplete: (one) => hasIssued(one, one) || roots.some((root) => hasIssued(root, one)),
  })
  if (!isComplete)
    throw new KeyRefused('unusable', 'the certificate leads to no root: add the certificates up to it')
  const above = chain.slice(1).map((one) => one.toString())
  const hasRoot = above.length > 0 && hasIssued(last, last)
  return { between: hasRoot ? above.slice(0, -1) : above, root: hasRoot ? above.at(-1) : undefined }
}
