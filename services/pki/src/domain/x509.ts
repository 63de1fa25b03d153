// The library asks for this before itself, and for somebody's cryptography.
import 'reflect-metadata'
import { webcrypto } from 'node:crypto'
import { cryptoProvider } from '@peculiar/x509'

cryptoProvider.set(webcrypto)

export * from '@peculiar/x509'
