// SQLite behind two small types: a file that is opened or made, and statements whose values are bound and read by place.
//
//   Database database("study.sqlite", Database::Use::write);
//   Transaction transaction(database);
//   database.prepare("insert into trials values (?, ?)").bind(number).bind(key).run();
//   transaction.commit();                      // not reached: rolled back
//
// The journal is SQLite's rollback journal: it needs no shared memory, so that it works on the parallel file systems of
// clusters, and a process killed at any moment leaves either all or nothing of a transaction. Every fault is a
// Failure that names the file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

struct sqlite3;
struct sqlite3_stmt;

namespace ridgeline::study {

class Statement;

class Database {
 public:
  enum class Use { read, write };
  Database(const std::string& path, Use use);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  Statement prepare(const char* sql);
  void execute(const char* sql);  // without values
  int64_t last_row() const;
  const std::string& path() const { return path_; }

  [[noreturn]] void fail(const char* what) const;  // with SQLite's own words

 private:
  friend class Statement;
  std::string path_;
  sqlite3* connection_ = nullptr;
};

class Statement {
 public:
  Statement(Database& database, const char* sql);
  Statement(Statement&& other) noexcept;
  Statement& operator=(Statement&&) = delete;
  ~Statement();

  // Binds the next placeholder.
  Statement& bind(int64_t value);
  Statement& bind(double value);  // not finite: null
  Statement& bind(const std::string& value);
  Statement& bind_null();
  template <typename Value>
  Statement& bind(const std::optional<Value>& value) {
    return value ? bind(*value) : bind_null();
  }

  bool step();  // whether there is a row
  void run();   // to its end

  bool is_null(int column) const;
  int64_t integer(int column) const;
  double number(int column) const;
  std::string text(int column) const;
  std::optional<double> optional_number(int column) const;

 private:
  Database& database_;
  sqlite3_stmt* statement_ = nullptr;
  int bound_ = 0;
};

class Transaction {
 public:
  explicit Transaction(Database& database);
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  void commit();

 private:
  Database& database_;
  bool open_ = true;
};

}  // namespace ridgeline::study
