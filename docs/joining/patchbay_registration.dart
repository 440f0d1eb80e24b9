import 'dart:convert';
import 'dart:io';
import 'dart:typed_data';
import 'package:crypto/crypto.dart';

/// The start and the end of the content of the DER element at an offset.
(int, int) element(Uint8List der, int at) {
  var (start, length) = (at + 2, der[at + 1]);
  if (length > 127) {
    var count = length & 127;
    for (length = 0; count > 0; count--) length = length << 8 | der[start++];
  }
  return (start, start + length);
}

/// The SHA-256 of the SubjectPublicKeyInfo. Dart's X509Certificate has only the whole certificate (RFC 5280).
List<int> pinOf(X509Certificate certificate) {
  final der = certificate.der;
  var at = element(der, element(der, 0).$1).$1;
  if (der[at] == 0xA0) at = element(der, at).$2; // version
  for (var field = 0; field < 5; field++) at = element(der, at).$2; // serial number to subject
  return sha256.convert(der.sublist(at, element(der, at).$2)).bytes;
}

/// A client that accepts one key. Without trusted roots, Dart asks the callback about every certificate.
HttpClient pinnedClient(List<int> pin) => HttpClient(context: SecurityContext(withTrustedRoots: false))
  ..badCertificateCallback = (certificate, host, port) => base64.encode(pinOf(certificate)) == base64.encode(pin);

/// Sends one request of the protocol. Null means that the broker refused it.
Future<Map<String, dynamic>?> send(HttpClient client, String method, Uri url, [Object? body, String? token]) async {
  final request = await client.openUrl(method, url);
  if (token != null) request.headers.set('Authorization', 'Bearer $token');
  if (body != null) request.headers.contentType = ContentType.json;
  if (body != null) request.write(jsonEncode(body));
  final response = await request.close();
  final text = await response.transform(utf8.decoder).join();
  return response.statusCode < 300 ? jsonDecode(text.isEmpty ? '{}' : text) : null;
}
