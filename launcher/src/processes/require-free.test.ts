import { expect, test } from 'vitest'
import { freePort } from './ports.js'
import { requireFree } from './require-free.js'

const settings = ['OVERLAY_ADDRESS', 'OVERLAY_LISTEN'] as const

test('two addresses of the product with one port are refused, with their settings', async () => {
  const text = `127.0.0.1:${await freePort()}`
  const metrics = { text, settings: ['OVERLAY_METRICS_ADDRESS'] as const }
  await requireFree([{ text: `127.0.0.1:${await freePort()}`, settings }, metrics])
  await expect(requireFree([{ text, settings }, metrics])).rejects.toThrow(
    'OVERLAY_ADDRESS and OVERLAY_METRICS_ADDRESS have the same port',
  )
})
