import type { Decoder, LinkMetrics } from '@overlay/channel'

type Reader = Parameters<Decoder<LinkMetrics>['decode']>[0]

const SOURCE_ID = 2
const HISTOGRAMS = 8
const KEY = 1
const VALUE = 2
const MEAN = 3
const LENGTH_DELIMITED = 2
const FIXED_64 = 1
const tagOf = (field: number, wireType: number): number => field * 8 + wireType

/** Of all that a router measures: `link.<id>.latency` and `link.<id>.queue_time`. */
const isOfLink = (name: string): boolean =>
  name.startsWith('link.') && (name.endsWith('.latency') || name.endsWith('.queue_time'))

/**
 * Decodes what concerns links, and passes over the rest unread: a router with thousands of links reports several
 * hundred thousand numbers.
 */
export const linkMetrics: Decoder<LinkMetrics> = {
  decode(reader) {
    const message: LinkMetrics = { sourceId: '', histograms: new Map() }
    while (reader.pos < reader.len) {
      const tag = reader.uint32()
      if (tag === tagOf(SOURCE_ID, LENGTH_DELIMITED)) message.sourceId = reader.string()
      else if (tag === tagOf(HISTOGRAMS, LENGTH_DELIMITED)) readHistogram(reader, message.histograms)
      else reader.skip(tag & 7)
    }
    return message
  },
}

function readHistogram(reader: Reader, histograms: LinkMetrics['histograms']): void {
  const end = endOf(reader)
  let name = ''
  let mean = 0
  while (reader.pos < end) {
    const tag = reader.uint32()
    if (tag === tagOf(KEY, LENGTH_DELIMITED)) {
      name = reader.string()
      if (!isOfLink(name)) break
    } else if (tag === tagOf(VALUE, LENGTH_DELIMITED)) mean = readMean(reader)
    else reader.skip(tag & 7)
  }
  reader.pos = end
  if (isOfLink(name)) histograms.set(name, { mean })
}

function readMean(reader: Reader): number {
  const end = endOf(reader)
  let mean = 0
  while (reader.pos < end) {
    const tag = reader.uint32()
    if (tag === tagOf(MEAN, FIXED_64)) {
      mean = reader.double()
      break // writers have the fields in order: the rest follows
    }
    reader.skip(tag & 7)
  }
  reader.pos = end
  return mean
}

/** Reads a length. Throws if the message ends before. */
function endOf(reader: Reader): number {
  const end = reader.uint32() + reader.pos
  if (end > reader.len) throw new RangeError('premature EOF')
  return end
}
