/**
 * The same bytes in memory of their own, for what is kept. Node cuts small buffers from larger ones, of 8 KiB or of 64 with
 * newer versions, and messages are read as parts of what was received: a part that is kept keeps all of it.
 */
export function ownBytes(bytes: Buffer): Buffer {
  if (bytes.length === bytes.buffer.byteLength) return bytes
  const own = Buffer.allocUnsafeSlow(bytes.length)
  bytes.copy(own)
  return own
}
