"""Certificates of an authority of our own, for servers with TLS."""

import datetime
import ipaddress
import pathlib

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


class Authority:
    """An authority whose certificate lies in `file`; those it issues lie beside it."""

    def __init__(self, directory, name="bergfs tests"):
        self.directory = pathlib.Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        rights = x509.BasicConstraints(ca=True, path_length=None)
        made = self.certificate(self.name, self.key.public_key()).add_extension(rights, True).sign(self.key, hashes.SHA256())
        self.file = self.directory / "authority.pem"
        self.file.write_bytes(made.public_bytes(serialization.Encoding.PEM))

    def certificate(self, name, key, days=(-1, 10)):
        now = datetime.datetime.now(datetime.timezone.utc)
        first, last = (now + datetime.timedelta(days=number) for number in days)
        builder = x509.CertificateBuilder().subject_name(name).issuer_name(self.name).public_key(key)
        return builder.serial_number(x509.random_serial_number()).not_valid_before(first).not_valid_after(last)

    def issue(self, host, days=(-1, 10)):
        """The files of a certificate for a host, and of its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        try:
            other = x509.IPAddress(ipaddress.ip_address(host))
        except ValueError:
            other = x509.DNSName(host)
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
        made = self.certificate(name, key.public_key(), days).add_extension(x509.SubjectAlternativeName([other]), False)
        made = made.add_extension(x509.BasicConstraints(ca=False, path_length=None), True).sign(self.key, hashes.SHA256())
        number = len(list(self.directory.iterdir()))
        certificate, private = self.directory / f"{number}.pem", self.directory / f"{number}.key"
        certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
        private.write_bytes(
            key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        )
        return certificate, private
