import { expect, test } from 'vitest'
import { readKeysArguments } from './read-arguments.js'

test.each<[string, object]>([
  ['', { action: 'list', isJson: false }],
  ['--json', { action: 'list', isJson: true }],
  ['prepare server', { action: 'prepare', role: 'server', from: undefined, passphraseFile: undefined }],
  ['prepare token --from a --passphrase-file b', { role: 'token', from: 'a', passphraseFile: 'b' }],
  ['activate root --force', { action: 'activate', role: 'root', force: true }],
  ['retire 1a2b', { action: 'retire', id: '1a2b', force: false }],
  ['prepare --help', { action: 'help' }],
])('the arguments "%s" are read', (line, expected) => {
  expect(readKeysArguments(line.split(' ').filter(Boolean))).toMatchObject(expected)
})

test.each([
  ['rotate', "'rotate' is not one of prepare, activate and retire"],
  ['prepare', 'prepare takes one argument: one of root, signing, server, token'],
  ['prepare server token', 'prepare takes one argument'],
  ['activate gateway', "activate: 'gateway' is not one of root, signing, server, token"],
  ['retire', 'retire takes one argument: the ID of a key'],
  ['--force', '--force has no meaning here'],
  ['activate root --from x', '--from has no meaning with activate'],
  ['prepare root --passphrase-file x', '--passphrase-file has no meaning without --from'],
  ['--wrong', "Unknown option '--wrong'"],
])('the arguments "%s" are refused with a reason', (line, message) => {
  expect(() => readKeysArguments(line.split(' '))).toThrow(message)
})
